# The sandbox that generated commands run in. BASE is any image with a shell and Python 3:
#   docker build --build-arg BASE=debian:stable -t textor-sandbox -f docker/sandbox.Dockerfile docker
ARG BASE
FROM ${BASE}
# Fails here, and not in the middle of a session, when the base is of no use.
RUN sh -c 'command -v bash && command -v python3 && python3 -c "import socket, threading"'
ENV LANG=C.UTF-8 HOME=/tmp TMPDIR=/tmp TERM=dumb
LABEL textor.sandbox=1
