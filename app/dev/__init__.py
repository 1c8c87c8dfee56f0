"""The development environment: private engines, demo data, `flask dev`; nothing else imports it."""
