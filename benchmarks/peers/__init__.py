"""The programs that the service is compared with; they share what is not framework or database."""
