"""The development environment: private servers, demo data, `flask dev`."""
