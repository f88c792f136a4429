// Command kubectl-fleet is the plugin behind `kubectl fleet`: it shows what a fleet does and why, and steers rollouts.
// It works with the hub's kubeconfig alone, on every hub that serves KubeFleet's API. Linked or copied to
// kubectl_complete-fleet, it completes `kubectl fleet` for kubectl.
package main

import (
	"os"

	"github.com/go-logr/logr"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/command"
)

//go:generate go run ./internal/clireference ../../deploy/docs/cli

func main() {
	ctx, done := cli.Interruptible()
	// What libraries log would break into tables and pictures; errors are returned.
	klog.SetLogger(logr.Discard())
	log.SetLogger(logr.Discard())
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	root := command.NewRoot(cli.NewFactory(), streams)
	root.SetArgs(cli.Arguments(os.Args))
	err := root.ExecuteContext(ctx)
	interrupted := ctx.Err() != nil
	done()
	os.Exit(cli.Report(os.Stderr, err, interrupted))
}
