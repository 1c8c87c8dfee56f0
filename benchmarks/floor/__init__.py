"""The floor: a bare WSGI application with hand-written SQL on psycopg2, and orjson.

What a careful developer would write for these few requests and nothing else. It does the same
work as the service: the token is verified, role and tenant state are read, the tenant is the
scope, the permission and the input are checked, the change and its audit row are durable before
the answer.
"""
