FROM rust:1.95-slim-bookworm AS build
WORKDIR /src
COPY . .
# The caches outlive a change of the source, so only what changed is built again. They are no part of the layer:
# hence the copy out of target/.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,id=vtq-target,target=/src/target \
    cargo build --release --locked -p vtq-cli \
    && cp target/release/vtq /usr/local/bin/vtq

FROM debian:bookworm-slim
# The certificates are for TLS to the database and for --url; the shell of the base image runs --exec and --pipe.
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /usr/local/bin/vtq /usr/local/bin/vtq
# By number, so that an orchestrator can see that it is not root.
USER 10001:10001
# As a list: vtq is then process 1 and gets SIGTERM itself, and a stop drains the worker.
ENTRYPOINT ["vtq"]
CMD ["--help"]
