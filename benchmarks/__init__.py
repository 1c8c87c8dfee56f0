"""How fast the service is, next to a bare handler and to the same thing on another stack."""
