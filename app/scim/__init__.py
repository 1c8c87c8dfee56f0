"""SCIM 2.0 (RFC 7643, RFC 7644): a customer's directory provisions its own people.

The protocol is served by `scim2-server`, which is loaded by the first request below ``/scim``:
:mod:`app.scim.protocol` and the modules that it imports (``resources``, ``storage``, ``filters``)
must not be imported by other modules. :mod:`app.connections` has the connections of a tenant.
"""
