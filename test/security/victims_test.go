//go:build integration

package security

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/devfleet/access"
)

const (
	// placed is the namespace that the attackers have rights in, and the placement that takes it to all members.
	placed = "shop"
	// other is a namespace of another team, which its own placement takes to all members.
	other = "bank"
	// password is in a Secret of the other team.
	password = "correct-horse-battery"
	// encodedPassword is the same as objects have it.
	encodedPassword = "Y29ycmVjdC1ob3JzZS1iYXR0ZXJ5"
	// hoard is the namespace of a team that writes too much into it.
	hoard = "hoard"
	// memberAccount is the account of a member in the namespace of such accounts.
	memberAccount = "member-1-hub-cluster-access"
	// crew is the namespace of an application team, which the placement of its name takes to all members without what is in
	// it, and the ResourcePlacement of the team.
	crew = "crew"
	// ranked is a namespace of a team in which the platform places something with a priority.
	ranked = "ranked"
	// gated is a run that waits for an approval after its first stage, its placement and its namespace.
	gated = "gated"
)

// victims stand on the hub while it is attacked.
var victims = teamOf(placed) + teamOf(other) + `
---
apiVersion: v1
kind: Secret
metadata: {namespace: ` + other + `, name: vault}
stringData: {password: ` + password + `}
` + "\n---\n" + placementManifest(placed, "RollingUpdate") + "\n---\n" + placementManifest(other, "RollingUpdate") + teamOf(gated) + "\n---\n" + placementManifest(gated, "External") + `
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterStagedUpdateStrategy
metadata: {name: gated}
spec:
  stages:
  - name: staging
    labelSelector: {matchLabels: {environment: staging}}
    afterStageTasks: [{type: Approval}]
  - name: canary
    labelSelector: {matchLabels: {environment: canary}}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterStagedUpdateStrategy
metadata: {name: separate}
spec:
  stages:
  - name: staging
    labelSelector: {matchLabels: {environment: staging}}
    afterStageTasks: [{type: Approval, approval: {excludedApprovers: [Creator]}}]
  - name: canary
    labelSelector: {matchLabels: {environment: canary}}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: limited}
spec:
  resourceSelectors: [{group: "", version: v1, kind: Namespace, name: ` + gated + `}]
  policy: {placementType: PickFixed, clusterNames: [nowhere]}
  strategy: {type: External, external: {allowedStrategies: [` + gated + `]}}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourceOverride
metadata: {name: victim}
spec:
  clusterResourceSelectors: [{group: "", version: v1, kind: Namespace, name: nowhere}]
  policy: {overrideRules: [{clusterSelector: {clusterSelectorTerms: []}, overrideType: Delete}]}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacementEviction
metadata: {name: victim}
spec: {placementName: nowhere, clusterName: member-1}
---
apiVersion: v1
kind: Namespace
metadata: {name: ` + hoard + `}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {namespace: default, name: kubernetes, labels: {kubernetes.io/service-name: kubernetes}}
addressType: IPv4
endpoints: [{addresses: [203.0.113.77]}]
ports: [{name: https, port: 6443}]
---
apiVersion: v1
kind: Namespace
metadata: {name: connect-to-fleet}
---
apiVersion: v1
kind: ServiceAccount
metadata: {namespace: connect-to-fleet, name: ` + memberAccount + `}
` + teamOf(crew) + `
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: ` + crew + `}
spec: {resourceSelectors: [{group: "", version: v1, kind: Namespace, name: ` + crew + `, selectionScope: NamespaceOnly}]}
---
` + teamPlacement(crew, "web", `{group: "", version: v1, kind: ConfigMap, name: marker}`) + `
---
` + teamPlacement(other, "web", `{group: "", version: v1, kind: Secret, name: none}`) + `
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: crew-owner}
rules: [{apiGroups: [placement.kubernetes-fleet.io], resources: ["*"], verbs: ["*"]}]
`

func teamOf(name string) string {
	return `
---
apiVersion: v1
kind: Namespace
metadata: {name: ` + name + `}
---
apiVersion: v1
kind: ConfigMap
metadata: {namespace: ` + name + `, name: marker}
data: {round: "0"}
`
}

// teamPlacement is a ResourcePlacement of what a selector selects.
func teamPlacement(namespace, name, selector string) string {
	return `apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ResourcePlacement
metadata: {namespace: ` + namespace + `, name: ` + name + `}
spec:
  resourceSelectors: [` + selector + `]
  policy: {placementType: PickAll}
  strategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 100%, unavailablePeriodSeconds: 0}}
`
}

// placementManifest is a placement that takes the namespace of its name to all members.
// Clusters that an attack fails on do not hold the others back.
func placementManifest(name, strategy string) string {
	limits := ""
	if strategy == "RollingUpdate" {
		limits = ", rollingUpdate: {maxUnavailable: 100%, unavailablePeriodSeconds: 0}"
	}
	return `apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: ` + name + `}
spec:
  resourceSelectors: [{group: "", version: v1, kind: Namespace, name: ` + name + `}]
  policy: {placementType: PickAll}
  strategy: {type: ` + strategy + limits + `}
`
}

// createVictims creates the victims and waits until the run waits for its approval and the guard rails are in force.
func (f *fleet) createVictims(ctx context.Context) error {
	for manifest := range strings.SplitSeq(victims, "\n---\n") {
		if strings.TrimSpace(manifest) == "" {
			continue
		}
		if _, err := creates(manifest)(ctx, f.hub); err != nil {
			return fmt.Errorf("creating a victim: %w", err)
		}
	}
	for _, name := range []string{placed, other, crew} {
		if err := f.awaitPlacement(ctx, name, "ClusterResourcePlacementAvailable"); err != nil {
			return err
		}
	}
	if err := f.awaitPlacement(ctx, gated, "ClusterResourcePlacementScheduled"); err != nil {
		return err
	}
	if _, err := creates(runOf(gated, gated))(ctx, f.hub); err != nil {
		return fmt.Errorf("creating the run: %w", err)
	}
	request := client.ObjectKey{Name: gated + "-staging"}
	if _, err := access.Await(ctx, f.hub, request, func(r *placementv1beta1.ClusterApprovalRequest) string {
		if r == nil {
			return "missing"
		}
		return ""
	}); err != nil {
		return err
	}
	return f.awaitGuardRails(ctx)
}

// awaitPlacement waits until a condition of a placement is true.
func (f *fleet) awaitPlacement(ctx context.Context, name, condition string) error {
	_, err := access.Await(ctx, f.hub, client.ObjectKey{Name: name}, func(p *placementv1beta1.ClusterResourcePlacement) string {
		if p == nil || !meta.IsStatusConditionTrue(p.Status.Conditions, condition) {
			return condition + " is not true"
		}
		return ""
	})
	return err
}

// awaitGuardRails waits until the guard rails refuse: the API server takes up all policies together.
func (f *fleet) awaitGuardRails(ctx context.Context) error {
	return wait.PollUntilContextCancel(ctx, probeEvery, true, func(ctx context.Context) (bool, error) {
		return f.guardRailsHold(ctx, true)
	})
}

// guardRailsHold says whether the guard rails refuse what they should, or, if that is wanted, whether they do not.
func (f *fleet) guardRailsHold(ctx context.Context, wanted bool) (bool, error) {
	object, err := parse(fmt.Sprintf(aPod, placed))
	if err != nil {
		return false, err
	}
	err = f.hub.Create(ctx, object, client.DryRunAll)
	if hold := apierrors.IsForbidden(err); hold || err == nil {
		return hold == wanted, nil
	}
	return false, err
}

func runOf(placement, name string) string {
	return `{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterStagedUpdateRun, metadata: {name: ` + name + `},
		spec: {placementName: ` + placement + `, stagedRolloutStrategyName: ` + gated + `, resourceSnapshotIndex: "0"}}`
}

// probeEvery is short: policies come into force within about a second.
const probeEvery = 50 * time.Millisecond

// rounds counts, for names and values that have not been there before.
var rounds atomic.Int32

// awaitMarker changes a ConfigMap of a placed namespace and waits until all members have it. What was written to the hub
// before is then taken up: a snapshot has all that is in the namespace, and members apply it as one.
func (s *spec) awaitMarker(namespace string) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	round := strconv.Itoa(int(rounds.Add(1)))
	_, err := patches(`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: `+namespace+`, name: marker}}`, `{data: {round: "`+round+`"}}`)(ctx, s.hub)
	require.NoError(s, err)
	for name, member := range s.members {
		_, err := access.Await(ctx, member, client.ObjectKey{Namespace: namespace, Name: "marker"}, func(c *corev1.ConfigMap) string {
			if c != nil && c.Data["round"] == round {
				return ""
			}
			return "not the latest"
		})
		require.NoError(s, err, "waiting on %s", name)
	}
}

// requireAbsent asserts that no member has an object, named by a manifest without content.
func (s *spec) requireAbsent(manifest string) {
	s.Helper()
	for name, member := range s.members {
		_, err := reads(manifest)(s.Context(), member)
		require.True(s, apierrors.IsNotFound(err) || meta.IsNoMatchError(err), "on %s: %v: %s", name, err, manifest)
	}
}

// create creates what a manifest says as an administrator, for the time of the spec.
func (s *spec) create(manifest string) {
	s.Helper()
	s.createAs(s.hub, manifest)
}

// createAs creates what a manifest says, which a user may, for the time of the spec.
func (s *spec) createAs(c client.Client, manifest string) {
	s.Helper()
	object, err := parse(manifest)
	require.NoError(s, err)
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	require.NoError(s, access.CreateWhenAdmitted(ctx, c, object))
	s.Cleanup(func() {
		require.NoError(s, client.IgnoreNotFound(s.hub.Delete(context.WithoutCancel(s.Context()), object)))
	})
}
