// Package diagnosis says whether a fleet is installed as it should be, of which versions its parts are, and what to do about what is
// wrong. It reads Facts, and decides from these alone.
package diagnosis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/hubread"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/kubefleet"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/internal/definitions"
	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
	"github.com/fleetflow/fleetflow/cmd/internal/patience"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/migration"
)

// Pod Security of the namespace of an agent, which needs no more.
const (
	PodSecurityLabel = "pod-security.kubernetes.io/enforce"
	PodSecurity      = "restricted"
)

// Facts are what is known of an installation.
type Facts struct {
	// Plugin, Kubectl and Kubernetes are the versions of this program, of the kubectl on the PATH, and of the hub's API server;
	// empty if they are not known.
	Plugin, Kubectl, Kubernetes string
	// Served are how many of the fleet's kinds the hub serves, Missing those that it does not, as in RolloutHold.fleetflow.io.
	Served  int
	Missing []string
	// Lacking are the fields that the hub drops, as its definitions lack them.
	Lacking []definitions.Gap
	// Leases are those of fleetflow's hub agents, one for each namespace that one runs in. KubeFleetLease is that of KubeFleet's,
	// nil if there is none.
	Leases         []coordinationv1.Lease
	KubeFleetLease *coordinationv1.Lease
	// TemporalLeases are those on which hub agents note whether they reach Temporal.
	TemporalLeases []coordinationv1.Lease
	// Deployments and Pods are those of hub agents. A fleet whose agents run outside of the hub has none.
	Deployments []appsv1.Deployment
	Pods        []corev1.Pod
	// Unrestricted are the namespaces of those Deployments that admit Pods with any rights.
	Unrestricted []string
	Members      []clusterv1beta1.MemberCluster
	// Unfinished is how many runs have not ended.
	Unfinished int
	// Waiting are placements and runs that say that Temporal cannot be reached, with what they say.
	Waiting []string
	// Unread is what may not be read, and why, Unanswered what else could not be. Of reads that the API server does not answer only the
	// first has a reason, and the others are Waited, by what they read.
	Unread, Unanswered, Waited []string
	// LeasesHidden, MembersHidden and WaitingHidden say what keeps the leases, the members, and placements or runs from being read.
	LeasesHidden, MembersHidden, WaitingHidden Hidden
	// Silent is why nothing could be read, as the API server does not answer at all.
	Silent error
	// Told is what records and messages go to, and ToldHidden what keeps it from being read.
	Told       []fleetview.Told
	ToldHidden Hidden
	// silent says that there was a read that the API server did not answer.
	silent bool
}

// Hidden is what keeps something from being read, as it stands before that in a sentence; empty if nothing does.
type Hidden string

const (
	hiddenByRights  Hidden = "you may not read"
	hiddenBySilence Hidden = "there is no answer about"
)

// agentLabel is on what the chart of the hub agent installs.
const agentLabel = "app.kubernetes.io/name"

// Read reads the facts that the hub has: what is served comes from a function, whose failure is an error. What else cannot be read is noted.
func Read(ctx context.Context, c client.Client, discover func() ([]*metav1.APIGroup, []*metav1.APIResourceList, error)) (*Facts, error) {
	f := &Facts{}
	_, lists, err := discover()
	if err != nil {
		return nil, fmt.Errorf("asking the hub which kinds it serves: %w", err)
	}
	f.compareKinds(c.Scheme(), lists)
	fleet := hub.Reader{Reader: c}
	agents := client.MatchingLabels{agentLabel: "hub-agent"}
	var ignored Hidden
	for _, read := range []struct {
		what   string
		hidden *Hidden
		do     func() error
	}{
		{"the leases of hub agents", &f.LeasesHidden, func() error { return f.readLeases(ctx, c) }},
		{"the lease of KubeFleet's hub agent", &ignored, func() (err error) {
			lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: kubefleet.HubAgentLease.Namespace,
				Name: kubefleet.HubAgentLease.Name}}
			f.KubeFleetLease, err = hubread.Existing(ctx, c, lease, "the lease of "+kubefleet.HubAgentLease.Agent+",")
			return err
		}},
		{"Deployments of hub agents", &ignored, func() error {
			list := &appsv1.DeploymentList{}
			defer func() { f.Deployments = list.Items }()
			return c.List(ctx, list, agents)
		}},
		{"the namespaces of hub agents", &ignored, func() error { return f.readNamespaces(ctx, c) }},
		{"Pods of hub agents", &ignored, func() error {
			list := &corev1.PodList{}
			defer func() { f.Pods = list.Items }()
			return c.List(ctx, list, agents)
		}},
		{"members", &f.MembersHidden, func() (err error) {
			f.Members, err = fleet.Members(ctx)
			return err
		}},
		{"placements", &f.WaitingHidden, func() error { return f.readPlacements(ctx, fleet) }},
		{"runs", &f.WaitingHidden, func() error { return f.readRuns(ctx, fleet) }},
		{"channels, rules and sinks", &f.ToldHidden, func() error { return f.readTold(ctx, c) }},
	} {
		switch err := read.do(); {
		case apierrors.IsForbidden(err):
			*read.hidden = hiddenByRights
			f.Unread = append(f.Unread, fmt.Sprintf("you may not read %s: %v", read.what, err))
		case err != nil:
			*read.hidden = hiddenBySilence
			f.NoteUnanswered(read.what, err)
		}
	}
	return f, nil
}

// NoteUnanswered notes what could not be read. The error of a read that the API server does not answer says the same as that of the first.
func (f *Facts) NoteUnanswered(what string, err error) {
	if _, is := errors.AsType[*patience.Unanswered](err); is && f.silent {
		f.Waited = append(f.Waited, what)
		return
	} else if is {
		f.silent = true
	}
	f.Unanswered = append(f.Unanswered, fmt.Sprintf("reading %s: %v", what, err))
}

func (f *Facts) readLeases(ctx context.Context, c client.Client) error {
	list := &coordinationv1.LeaseList{}
	named := client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", migration.HubAgentLease.Name)}
	if err := c.List(ctx, list, named); err != nil {
		return err
	}
	f.Leases = list.Items
	noted := &coordinationv1.LeaseList{}
	named = client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", clusterv1beta1.TemporalLease)}
	if err := c.List(ctx, noted, named); err != nil {
		return err
	}
	f.TemporalLeases = noted.Items
	return nil
}

// readNamespaces looks at what the namespaces of hub agents admit.
func (f *Facts) readNamespaces(ctx context.Context, c client.Client) error {
	names := sets.New[string]()
	for i := range f.Deployments {
		names.Insert(f.Deployments[i].Namespace)
	}
	for _, name := range sets.List(names) {
		namespace := &corev1.Namespace{}
		if err := c.Get(ctx, client.ObjectKey{Name: name}, namespace); apierrors.IsNotFound(err) {
			continue // it has been deleted since
		} else if err != nil {
			return err
		}
		if level := namespace.Labels[PodSecurityLabel]; level == "" || level == "privileged" {
			f.Unrestricted = append(f.Unrestricted, name)
		}
	}
	return nil
}

func (f *Facts) readPlacements(ctx context.Context, fleet hub.Reader) error {
	placements, err := fleet.Placements(ctx)
	for _, placement := range placements {
		f.noteWaiting(placement.Ref.String(), placement.Object.GetPlacementStatus().Conditions)
	}
	return err
}

func (f *Facts) readRuns(ctx context.Context, fleet hub.Reader) error {
	runs, err := fleet.Runs(ctx)
	for _, run := range runs {
		conditions := run.Object.GetUpdateRunStatus().Conditions
		f.noteWaiting(run.Ref.String(), conditions)
		end := meta.FindStatusCondition(conditions, placementv1beta1.ConditionTypeSucceeded)
		if end == nil || end.Status == metav1.ConditionUnknown {
			f.Unfinished++
		}
	}
	return err
}

// noteWaiting notes an object that waits for Temporal.
func (f *Facts) noteWaiting(object string, conditions []metav1.Condition) {
	if c := meta.FindStatusCondition(conditions, placementv1beta1.ConditionTypeEngineReachable); c != nil &&
		c.Status == metav1.ConditionFalse {
		f.Waiting = append(f.Waiting, object+": "+c.Message)
	}
}

// compareKinds compares the kinds that this program knows with those that the hub serves.
func (f *Facts) compareKinds(scheme *runtime.Scheme, lists []*metav1.APIResourceList) {
	served := map[schema.GroupVersionKind]bool{}
	for _, list := range lists {
		of, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue // not a version of ours
		}
		for _, resource := range list.APIResources {
			served[of.WithKind(resource.Kind)] = true
		}
	}
	known := scheme.AllKnownTypes()
	for kind := range known {
		_, isObject := known[kind.GroupVersion().WithKind(kind.Kind+"List")]
		switch {
		case !isObject || !slices.Contains(definitions.Versions, kind.GroupVersion()), kind.Kind == "AppliedWork": // which members serve
		case served[kind]:
			f.Served++
		default:
			f.Missing = append(f.Missing, kind.Kind+"."+kind.Group)
		}
	}
	slices.Sort(f.Missing)
}

// missesOwn reports whether only kinds are missing that KubeFleet does not have either.
func (f *Facts) missesOwn() bool {
	return !slices.ContainsFunc(f.Missing, func(kind string) bool {
		return !strings.HasSuffix(kind, "."+
			fleetflowv1alpha1.GroupVersion.Group)
	})
}
