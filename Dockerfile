# swebatch as an image. It starts containers on the engine whose socket it is given, and mounts nothing of the host into them.
#
#   npm ci && npm run build && docker build -t swebatch .
#   docker run --rm -it -v /var/run/docker.sock:/var/run/docker.sock -v "$PWD/results:/work/results" swebatch run -c demo --evaluate
#
# Any image with Node 22.19 or newer and glibc.
ARG BASE=node:24-bookworm-slim
FROM ${BASE}
WORKDIR /opt/swebatch
COPY . .
# Packages that are in the context already are taken as they are, so that an image can be made without a network. No install script has to run.
RUN [ -d node_modules ] || npm ci --omit=dev --ignore-scripts --no-audit --no-fund
# What some settings need beside them: --build-arg PACKAGES=@kubernetes/client-node for runs inside of a cluster.
ARG PACKAGES=
RUN [ -z "$PACKAGES" ] || npm install --no-save --ignore-scripts --no-audit --no-fund $PACKAGES
RUN ln -s /opt/swebatch/dist/cli/bin.js /usr/local/bin/swebatch && chmod +x dist/cli/bin.js && swebatch --version
WORKDIR /work
VOLUME /work/results
ENTRYPOINT ["swebatch"]
CMD ["--help"]
