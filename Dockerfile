# Images of the agents, and of the command line:
#
#   docker buildx build --platform linux/amd64,linux/arm64 --build-arg PROGRAM=hub-agent --build-arg VERSION=<tag> -t <registry>/hub-agent:<tag> --push .
#
# PROGRAM is hub-agent, member-agent, fleet-dashboard, kubectl-fleet or bundled-temporal, VERSION what it answers to --version. Go compiles for the other
# platform by itself, so nothing is emulated. The same commit gives the same binary: no paths, no time, no version control
# data in it.
#
# BUILD_IMAGE and BASE_IMAGE are the images it is built in and runs on; make images names them by digest.
ARG BUILD_IMAGE=golang:1.26.11
ARG BASE_IMAGE=gcr.io/distroless/static-debian12:nonroot

FROM --platform=$BUILDPLATFORM ${BUILD_IMAGE} AS build
ARG TARGETOS TARGETARCH PROGRAM VERSION
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY apis apis
COPY activities activities
COPY cmd cmd
COPY controllers controllers
# kubectl fleet brings the chart of the member agent along.
COPY deploy/charts deploy/charts
COPY worker worker
COPY workflows workflows
# The server in the image bundled-temporal is pinned by this module, so that the product does not depend on it.
COPY test/controlplane test/controlplane
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    test -n "$PROGRAM" && \
    CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH GOTOOLCHAIN=local \
    go build -trimpath -buildvcs=false -ldflags="-s -w -buildid= -X github.com/fleetflow/fleetflow/cmd/version.number=$VERSION" -o /out/program ./cmd/$PROGRAM && \
    if [ "$PROGRAM" = bundled-temporal ]; then cd test/controlplane && CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH GOTOOLCHAIN=local \
    go build -trimpath -buildvcs=false -ldflags="-s -w -buildid=" -o /out/temporal github.com/temporalio/cli/cmd/temporal; fi

# No shell, no package manager; certificates of well-known authorities, and a user who is not root.
FROM ${BASE_IMAGE}
ARG PROGRAM VERSION
LABEL org.opencontainers.image.title=$PROGRAM \
      org.opencontainers.image.version=$VERSION \
      org.opencontainers.image.source=https://github.com/fleetflow/fleetflow \
      org.opencontainers.image.licenses=Apache-2.0
COPY --from=build /out/ /
USER 65532:65532
ENTRYPOINT ["/program"]
