# One image for all processes: web, worker, background, stream, migrations and commands.
# docs/operations/containers.md describes how to run it.
FROM python:3.13-slim

ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PATH=/opt/controlplane/.venv/bin:$PATH
WORKDIR /opt/controlplane

# Of requirements.txt only what the service needs, in the versions of the whole file.
COPY requirements.txt ./
RUN sed '/^# `flask dev` and tests/,$d' requirements.txt > /tmp/service.txt \
    && python3 -m venv .venv \
    && .venv/bin/pip install --no-cache-dir --disable-pip-version-check -r /tmp/service.txt -c requirements.txt

COPY app ./app
COPY migrations ./migrations
COPY wsgi.py gunicorn.conf.py ./
RUN .venv/bin/python -m compileall -q app migrations wsgi.py && useradd --system --uid 10001 controlplane

USER controlplane
ENV PORT=8000
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8000/readyz', timeout=4)"]
CMD ["gunicorn", "wsgi:app"]
