// Package toolchain finds, downloads or builds the programs the local fleet runs: the Kubernetes control plane, etcd, KWOK,
// the Temporal CLI, Prometheus and this repository's own agents. Everything can be built from the Go module proxy; what
// publishers have released is downloaded where they can be reached. The catalogue, the releases, the estimate and the version
// rules are pure; a Provider and BuildAgents run the Go command.
package toolchain

import (
	"fmt"
	"strconv"
	"strings"
)

// Tool describes one program: where its source is pinned, how it is built, and how to tell its version.
type Tool struct {
	// Binary is the name of the file, also on PATH.
	Binary string
	// Project names the folder of the cache, before the version: programs of one project are released together.
	Project string
	// Folder is the module that pins the version, relative to test/controlplane; empty for the one that most programs share.
	Folder string
	// Module is the Go module whose version in that go.mod counts.
	Module string
	// Package is the main package to build, as the module of the Folder names it.
	Package string
	// VersionArgs make the program print its version.
	VersionArgs []string
	// AnyVersion accepts whatever version is found on PATH: true for programs only people run.
	AnyVersion bool
	// OnDemand leaves the program unbuilt until it is asked for by name: true for those that few fleets run.
	OnDemand bool
	// tags are the build tags.
	tags []string
	// released is the number of the release that a version of the module is; nil where they are the same.
	released func(version string) string
	// stamps are the linker variables that receive the version, by the form of it they want.
	stamps []stamp
}

// stamp sets one string variable at link time.
type stamp struct {
	variable string
	value    func(version string) string
}

const (
	kubernetesModule = "k8s.io/kubernetes"
	// Prometheus is the name of the program that only fleets with a Prometheus have built.
	Prometheus = "prometheus"
	// TemporalServer is the name of Temporal's server for production, which only tests with an authorizer have built.
	TemporalServer = "temporal-server"
	// TemporalSchema is the name of the program that makes the databases and schemas of that server.
	TemporalSchema = "temporal-sql-tool"
	// Kubelet is the name of a program that only fleets with real nodes have built.
	Kubelet = "kubelet"
	// KubeProxy is the name of the other one.
	KubeProxy = "kube-proxy"
)

// Catalogue lists every program of the local fleet, the slowest build first.
func Catalogue() []Tool {
	return []Tool{
		kubernetesTool("kube-apiserver"),
		controllersTool(),
		kubernetesTool("kube-scheduler"),
		kubectlTool(),
		nodeTool(Kubelet),
		nodeTool(KubeProxy),
		{
			Binary: "temporal", Project: "temporal", Module: "github.com/temporalio/cli",
			Package: "github.com/temporalio/cli/cmd/temporal", VersionArgs: []string{"--version"},
			stamps: []stamp{{"github.com/temporalio/cli/internal/temporalcli.Version", withoutV}},
		},
		{
			Binary: TemporalServer, Project: TemporalServer, Module: "go.temporal.io/server",
			Package: "go.temporal.io/server/cmd/server", VersionArgs: []string{"--version"}, OnDemand: true,
		},
		{
			Binary: TemporalSchema, Project: TemporalServer, Module: "go.temporal.io/server",
			Package: "go.temporal.io/server/cmd/tools/sql", VersionArgs: []string{"--version"}, OnDemand: true,
		},
		{
			Binary: "etcd", Project: "etcd", Module: "go.etcd.io/etcd/server/v3",
			Package: "go.etcd.io/etcd/server/v3", VersionArgs: []string{"--version"},
		},
		{
			Binary: "kwok", Project: "kwok", Module: "sigs.k8s.io/kwok",
			Package: "sigs.k8s.io/kwok/cmd/kwok", VersionArgs: []string{"--version"},
		},
		{
			Binary: Prometheus, Project: "prometheus", Folder: "prometheus", Module: "github.com/prometheus/prometheus",
			Package: "github.com/prometheus/prometheus/cmd/prometheus", VersionArgs: []string{"--version"}, OnDemand: true,
			// Without those that find targets in clouds, which are most of it; files name the targets here.
			tags: []string{"remove_all_sd"}, released: prometheusRelease,
			stamps: []stamp{{"github.com/prometheus/common/version.Version", func(v string) string { return withoutV(prometheusRelease(v)) }}},
		},
	}
}

func kubernetesTool(binary string) Tool {
	tool := Tool{
		Binary: binary, Project: "kubernetes", Module: kubernetesModule,
		Package: kubernetesModule + "/cmd/" + binary, VersionArgs: []string{"--version"},
	}
	// Without these an API server reports v0.0.0, which clients and feature gates take at its word.
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		tool.stamps = append(tool.stamps,
			stamp{pkg + ".gitVersion", func(v string) string { return v }},
			stamp{pkg + ".gitMajor", func(v string) string { return versionPart(v, 0) }},
			stamp{pkg + ".gitMinor", func(v string) string { return versionPart(v, 1) }},
			stamp{pkg + ".gitTreeState", func(string) string { return "clean" }},
		)
	}
	return tool
}

// controllersTool is built with upstream's controllers that a local fleet runs, and not with those that need the kubelet's
// packages.
func controllersTool() Tool {
	tool := kubernetesTool("kube-controller-manager")
	tool.Package = "./kube-controller-manager"
	return tool
}

// nodeTool is a program of a real node, which a module of its own pins at the same version.
func nodeTool(binary string) Tool {
	tool := kubernetesTool(binary)
	tool.Folder = "nodes"
	tool.OnDemand = true
	return tool
}

func kubectlTool() Tool {
	tool := kubernetesTool("kubectl")
	tool.VersionArgs = []string{"version", "--client"}
	tool.AnyVersion = true
	return tool
}

// LinkerFlags returns the -ldflags for building the tool at the version.
func (t Tool) LinkerFlags(version string) string {
	flags := []string{"-s", "-w"}
	for _, s := range t.stamps {
		flags = append(flags, "-X", s.variable+"="+s.value(version))
	}
	return strings.Join(flags, " ")
}

// prometheusRelease returns the release that a version of Prometheus' module is: v0.316.1 is release 3.16.1.
func prometheusRelease(version string) string {
	minor, err := strconv.Atoi(versionPart(version, 1))
	if err != nil {
		return version
	}
	return fmt.Sprintf("v%d.%d.%s", minor/100, minor%100, versionPart(version, 2))
}

func withoutV(version string) string { return strings.TrimPrefix(version, "v") }

// versionPart returns the i-th dotted number of a version such as v1.36.3.
func versionPart(version string, i int) string {
	parts := strings.Split(withoutV(version), ".")
	if i >= len(parts) {
		return ""
	}
	return parts[i]
}
