# Textor in an image. BASE is any Debian with Python 3.11 or newer, such as python:3.12-slim:
#   docker build --build-arg BASE=python:3.12-slim -t textor .
# `textor self build TAG` makes one of a version, also where nothing can be fetched while building or
# BASE has no pip: it puts wheels into wheels/ and builds the target `needs` once, as BASE of the rest.
# One image for every command of `textor`; the data folder is /data, the workspace /work:
#   docker run -i  -v textor:/data -v "$PWD:/work" textor run --stdio
#   docker run -p 127.0.0.1:7771:7771 -v textor:/data -v "$PWD:/work" textor serve --host 0.0.0.0 --no-browser
ARG BASE
FROM ${BASE} AS made
ARG EXTRAS=""
COPY docker/needs.py pyproject.toml wheel[s] /needs/
RUN python3 /needs/needs.py /needs "${EXTRAS}" /made
LABEL textor.stage=made

# What Textor needs, without Textor.
FROM ${BASE} AS needs
COPY --from=made /made/ /
# Fails here, and not in the middle of a session, when the base is of no use.
RUN /opt/textor/bin/python -I -c 'import msgspec, numpy, onnxruntime, pydantic'
LABEL textor.needs=1

# Nothing of the version is run while it is built: compiling only reads.
FROM needs
COPY src/textor /opt/textor/src/textor
RUN /opt/textor/bin/python -I -S -m compileall -q /opt/textor/src && mkdir -p /data /work
ENV PATH=/opt/textor/bin:$PATH LANG=C.UTF-8 PYTHONUNBUFFERED=1 \
    TEXTOR_DATA=/data TEXTOR_CONFIG=/data/config.toml XDG_STATE_HOME=/data/state
WORKDIR /work
LABEL textor.image=1
ENTRYPOINT ["textor"]
CMD ["run", "--stdio"]
