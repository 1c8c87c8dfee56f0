"""The commands that are made of operations, for the operator in this process and over HTTP.

These modules, and :mod:`app.surfaces.operations`, need only click and rich and import one another
relatively: the Python client contains them as ``controlplane.commands``.
"""
