"""The console: the service for people with a browser.

Its pages call the service's own API in process (:mod:`app.console.api`) with the claims of the
session. So permissions, validation, audit and tenant isolation are those of the API. No module here
imports a service or a model.
"""
