// Command kube-controller-manager runs those controllers of Kubernetes that a local fleet needs. They are upstream's packages, with
// upstream's flags, defaults and names, so that the whole program of the same version can stand in for it. The controllers that
// are left out import the kubelet and the plug-ins of volumes, which are most of what would be compiled.
package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	_ "time/tzdata" // the time zones of CronJobs

	"github.com/spf13/cobra"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	restclient "k8s.io/client-go/rest"
	"k8s.io/component-base/cli"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/cli/globalflag"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	metricsfeatures "k8s.io/component-base/metrics/features"
	"k8s.io/component-base/version/verflag"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app/config"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
)

func main() { os.Exit(run()) }

func run() int {
	for _, add := range []func() error{
		func() error { return logsapi.AddFeatureGates(utilfeature.DefaultMutableFeatureGate) },
		func() error { return metricsfeatures.AddFeatureGates(utilfeature.DefaultMutableFeatureGate) },
	} {
		if err := add(); err != nil {
			fmt.Fprintln(os.Stderr, "adding feature gates:", err)
			return 1
		}
	}
	command, err := newCommand()
	if err != nil {
		fmt.Fprintln(os.Stderr, "reading the default options:", err)
		return 1
	}
	return cli.Run(command)
}

func newCommand() (*cobra.Command, error) {
	o, err := options.NewKubeControllerManagerOptions()
	if err != nil {
		return nil, err
	}
	all := slices.Sorted(maps.Keys(known))
	command := &cobra.Command{
		Use:   "kube-controller-manager",
		Short: "Runs the controllers of Kubernetes that a local fleet needs",
		Args:  cobra.NoArgs,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			restclient.SetDefaultWarningHandler(restclient.NoWarnings{}) // every API is watched, deprecated ones too
			return o.ComponentGlobalsRegistry.Set()
		},
		RunE: func(*cobra.Command, []string) error {
			verflag.PrintAndExitIfRequested()
			if err := logsapi.ValidateAndApply(o.Logs, utilfeature.DefaultFeatureGate); err != nil {
				return err
			}
			// Not one that signals end: as upstream's, the program ends at once.
			ctx := context.Background()
			c, err := o.Config(ctx, all, nil, nil)
			if err != nil {
				return err
			}
			return runControllers(ctx, c)
		},
	}
	flags := o.Flags(all, nil, nil)
	verflag.AddFlags(flags.FlagSet("global"))
	globalflag.AddGlobalFlags(flags.FlagSet("global"), command.Name(), logs.SkipLoggingConfigurationFlags())
	for _, set := range flags.FlagSets {
		command.Flags().AddFlagSet(set)
	}
	cliflag.SetUsageAndHelpFunc(command, flags, 0)
	return command, nil
}

// runControllers returns when no controller runs any more.
func runControllers(ctx context.Context, c *config.Config) error {
	if c.ComponentConfig.Generic.LeaderElection.LeaderElect {
		return errors.New("this program is built without the election of a leader: --leader-elect=false")
	}
	if c.SecureServing != nil {
		return errors.New("this program serves neither health nor metrics: --secure-port=0")
	}
	if c.ComponentConfig.KubeCloudShared.UseServiceAccountCredentials {
		return errors.New("the controllers of this program share one user: --use-service-account-credentials=false")
	}
	c.EventBroadcaster.StartStructuredLogging(0)
	c.EventBroadcaster.StartRecordingToSink(&corev1.EventSinkImpl{Interface: c.Client.CoreV1().Events("")})
	defer c.EventBroadcaster.Shutdown()
	m, err := newManager(ctx, c)
	if err != nil {
		return err
	}
	return m.run(ctx)
}
