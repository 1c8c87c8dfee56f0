"""What commands, tools for agents and reference pages share: the operations of the document."""
