"""The document's operations, shared by commands, tools for agents and reference pages."""
