# The image of `rmqfast server`, out of the wheels of `make wheels`: docs/broker.md says how it is run.
# A release names the base with its digest: --build-arg BASE=python:3.11-slim@sha256:...
ARG BASE=python:3.11-slim

FROM --platform=$BUILDPLATFORM ${BASE} AS site
ARG TARGETARCH
COPY release/image_site.sh requirements/image.txt dist/release/*.whl /build/
RUN /build/image_site.sh "${TARGETARCH}" /build /build/image.txt /opt/rmqfast && mkdir /store

# No command runs below: an image for another processor needs no emulation.
FROM ${BASE}
COPY --from=site /opt/rmqfast /opt/rmqfast
COPY --from=site --chown=10001:10001 /store /store
# With `--secure /store/secured` the commands in the container have its accounts.
ENV PATH=/opt/rmqfast/bin:$PATH \
    PYTHONPATH=/opt/rmqfast \
    RMQFAST_NAME_SERVER=127.0.0.1:9876 \
    XDG_CONFIG_HOME=/store/secured
USER 10001:10001
VOLUME /store
# Name server, broker, the broker's second listener, and its log for slaves.
EXPOSE 9876 10911 10909 10912
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s CMD ["rmqfast", "cluster", "show"]
ENTRYPOINT ["rmqfast", "server"]
CMD ["--store", "/store"]
