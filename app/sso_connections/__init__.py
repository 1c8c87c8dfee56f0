"""SSO connections as the identity provider reports them by webhooks. Nothing else changes them."""
