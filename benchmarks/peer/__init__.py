"""The peer: the same requests on FastAPI, pydantic, async SQLAlchemy and asyncpg."""
