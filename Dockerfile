# Textor in an image. BASE is any Debian with Python 3.11 or newer, such as python:3.12-slim:
#   docker build --build-arg BASE=python:3.12-slim -t textor .
# Where no package registry can be reached while building, or BASE has no pip, put wheels into wheels/
# before (for the Python of BASE; scripts/image.sh does that):  pip wheel -w wheels . pip
# One image, three uses; the data folder is the volume /data, the workspace /work:
#   docker run -i  -v textor:/data -v "$PWD:/work" textor run --stdio
#   docker run     -v textor:/data -v "$PWD:/work" textor train …
#   docker run -p 127.0.0.1:7771:7771 -v textor:/data -v "$PWD:/work" textor serve --host 0.0.0.0 --no-browser
ARG BASE
FROM ${BASE} AS build
COPY pyproject.toml README.md /source/
COPY src /source/src
COPY README.md wheel[s] /wheels/
RUN if ls /wheels/textor-*.whl >/dev/null 2>&1; then \
        python3 -m venv --without-pip /opt/textor && \
        /opt/textor/bin/python "$(ls /wheels/pip-*.whl)/pip" install --no-cache-dir --no-index --find-links /wheels textor; \
    else \
        python3 -m venv /opt/textor && /opt/textor/bin/pip install --no-cache-dir /source; \
    fi

FROM ${BASE}
COPY --from=build /opt/textor /opt/textor
# Fails here, and not in the middle of a session, when the base is of no use.
RUN /opt/textor/bin/textor --version && mkdir -p /data /work
ENV PATH=/opt/textor/bin:$PATH LANG=C.UTF-8 PYTHONUNBUFFERED=1 \
    TEXTOR_DATA=/data TEXTOR_CONFIG=/data/config.toml XDG_STATE_HOME=/data/state
VOLUME /data
WORKDIR /work
LABEL textor.image=1
ENTRYPOINT ["textor"]
CMD ["run", "--stdio"]
