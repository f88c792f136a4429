package command

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/base"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// asInKubeFleet has a command take flags that KubeFleet's plugin has for it, in either spelling that it has had, so that
// scripts for that one work. They are not shown.
func asInKubeFleet(f *cli.Factory, cmd *cobra.Command, flags ...string) {
	cmd.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		switch name {
		case "hubClusterContext":
			name = "hub-cluster-context"
		case "clusterName":
			name = "cluster-name"
		}
		return pflag.NormalizedName(name)
	})
	cmd.Flags().StringVar(f.Flags.Context, "hub-cluster-context", *f.Flags.Context, "The same as --context.")
	for _, flag := range append(flags, "hub-cluster-context") {
		_ = cmd.Flags().MarkHidden(flag) // fails only for a flag that is not there
	}
}

// isCalledAsInKubeFleet reports whether a command is called by the name and with the flag by which KubeFleet's plugin is told the
// member. Scripts that do have no terminal, and that plugin does not ask.
func isCalledAsInKubeFleet(cmd *cobra.Command) bool {
	return cmd.CalledAs() != cmd.Name() && cmd.Flags().Changed("cluster-name")
}

// waitsForNothing has a command take KubeFleet's --timeout, which has no meaning for it.
func waitsForNothing(cmd *cobra.Command) {
	cmd.Flags().Duration("timeout", 0, "Nothing is waited for.")
	_ = cmd.Flags().MarkHidden("timeout") // fails only for a flag that is not there
}

// requestWords are what KubeFleet's plugin calls approval requests, and whether those are namespaced.
var requestWords = map[string]bool{
	"clusterapprovalrequest": false, "clusterapprovalrequests": false, "careq": false,
	"approvalrequest": true, "approvalrequests": true, "areq": true,
}

// requestOf returns the approval request that an argument names, as KubeFleet's plugin takes it: KIND with --name NAME, or
// KIND/NAME as kubectl does.
func requestOf(arg, name string) (request string, namespaced, is bool) {
	kind, behind, qualified := strings.Cut(arg, "/")
	if qualified {
		name = behind
	}
	namespaced, is = requestWords[strings.ToLower(kind)]
	return name, namespaced, is && name != ""
}

// runAndStage returns the run that an approval request belongs to, and the stage it is for.
func (v *verbCommand) runAndStage(ctx context.Context, c client.WithWatch, name string, namespaced bool) (run, stage string, err error) {
	var scope placementv1beta1.Scope
	if namespaced {
		if scope.Namespace, _, err = v.Factory.Namespace(); err != nil {
			return "", "", err
		}
	}
	request := scope.NewApprovalRequest(name)
	err = c.Get(ctx, scope.Key(name), request)
	if apierrors.IsNotFound(err) || hub.Unserved(err) {
		return "", "", fmt.Errorf("there is no approval request %q; kubectl fleet get runs shows which runs wait for one", name)
	}
	if err != nil {
		return "", "", fmt.Errorf("reading approval request %q: %w", name, err)
	}
	spec := request.GetApprovalRequestSpec()
	ref := hub.Ref{Kind: hub.KindRun, Namespace: scope.Namespace, Name: spec.TargetUpdateRun}
	return qualifiedRun(ref), spec.TargetStage, nil
}

// takeRequests lets a user name what is approved by an approval request as well, as KubeFleet's plugin does.
func takeRequests(v *verbCommand, cmd *cobra.Command) {
	var name string
	cmd.Flags().StringVar(&name, "name", "", "The approval request, for scripts that name it so.")
	asInKubeFleet(v.Factory, cmd, "name")
	waitsForNothing(cmd)
	check := cmd.Args
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if _, is := requestWords[strings.ToLower(strings.Join(args, " "))]; name != "" && !is {
			return fmt.Errorf("--name names an approval request, as in: kubectl fleet approve clusterapprovalrequest --name %s", name)
		}
		return check(cmd, args)
	}
	v.find = func(ctx context.Context, c client.WithWatch, arg string) (hub.Found, error) {
		if request, namespaced, is := requestOf(arg, name); is {
			run, stage, err := v.runAndStage(ctx, c, request, namespaced)
			if err != nil {
				return hub.Found{}, err
			}
			arg = run
			_ = cmd.Flags().Set("stage", stage) // fails only for a flag that is not there
		}
		return base.Find(ctx, v.Factory, c, arg, hub.KindRun)
	}
}

// takeClusterName lets a user name the member by a flag as well, as KubeFleet's plugin does.
func takeClusterName(v *verbCommand, cmd *cobra.Command) {
	var name string
	cmd.Flags().StringVar(&name, "cluster-name", "", "The member, for scripts that name it so.")
	asInKubeFleet(v.Factory, cmd, "cluster-name")
	if v.verb.Name == "uncordon" {
		waitsForNothing(cmd)
	}
	v.adjust = func(cmd *cobra.Command, args []string) []string {
		v.Yes = v.Yes || isCalledAsInKubeFleet(cmd)
		if name == "" {
			return args
		}
		return append(slices.Clone(args), name)
	}
}
