package rollingupdate

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/validation"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// roomFacts are those of a placement with annotations, of so many clusters that have no resources yet, and so many that are evicted.
func roomFacts(annotations map[string]string, clusters, evicted int) *rolloutFacts {
	f := newRolloutFacts()
	f.claimRoom = roomForClaim(annotations)
	f.Limits = rollout.Limits{Target: clusters + evicted, MaxSurge: clusters, MaxUnavailable: clusters}
	f.Policy = rollout.EvictionPolicy{Type: string(placementv1beta1.PickAllPlacementType)}
	for i := range clusters + evicted {
		name := fmt.Sprintf("cluster-%04d-%s", i, strings.Repeat("x", 40))
		c := rollout.Cluster{Name: name, State: rollout.Scheduled}
		if i >= clusters {
			c = rollout.Cluster{Name: name, State: rollout.Bound, Placed: true, Current: true, Available: true}
			eviction := fmt.Sprintf("eviction-%04d-%s", i, strings.Repeat("y", 200))
			f.Evictions = append(f.Evictions, rollout.Eviction{Name: eviction, Cluster: name})
			f.evictionUIDs[eviction] = "11111111-2222-3333-4444-555555555555"
		}
		f.Clusters = append(f.Clusters, c)
		f.bindingNames[name] = "binding-of-" + name
		f.pins[name] = wf.Change{Cluster: name, UID: "66666666-7777-8888-9999-000000000000"}
	}
	return f
}

// claimOf is the claim of the batch that a plan proposes.
func claimOf(f *rolloutFacts, plan rollout.Plan) claim {
	in := wf.AdvanceRequest{Snapshot: "crp-12345-snapshot"}
	in.Epoch = 1 << 40
	for _, step := range plan.Evictions {
		in.Batch = append(in.Batch, f.evictionChange(step))
	}
	for _, step := range plan.Steps[:min(len(plan.Steps), maxBatch)] {
		change := f.pins[step.Cluster]
		change.Op = string(step.Op)
		in.Batch = append(in.Batch, change)
	}
	return newClaim(in)
}

func TestAClaimHasRoomBesideAllElseThatIsAnnotated(t *testing.T) {
	kept := 200 * 1024
	for sentence, test := range map[string]struct {
		annotations       map[string]string
		clusters, evicted int
	}{
		"many clusters alone":                      {nil, 3000, 0},
		"many clusters beside a manifest":          {map[string]string{"kubectl.kubernetes.io/last-applied-configuration": strings.Repeat("m", kept)}, 3000, 0},
		"many evictions":                           {nil, 0, maxEvictions},
		"many evictions and clusters":              {nil, 3000, maxEvictions},
		"many evictions and clusters beside a lot": {map[string]string{"example.com/a": strings.Repeat("m", kept/2), "example.com/b": strings.Repeat("m", kept/2)}, 3000, maxEvictions},
	} {
		t.Run(sentence, func(t *testing.T) {
			f := roomFacts(test.annotations, test.clusters, test.evicted)
			c := claimOf(f, f.decidePlan())
			assert.NotEmpty(t, c.Clusters)
			text, err := json.Marshal(c)
			require.NoError(t, err)
			all := map[string]string{placementv1beta1.RolloutClaimAnnotation: string(text)}
			maps.Copy(all, test.annotations)
			assert.NoError(t, validation.ValidateAnnotationsSize(all), "%d clusters, %d evictions", len(c.Clusters), len(c.Evictions))
		})
	}
}

// What has begun is carried on with, whatever else is annotated meanwhile.
func TestWhatIsClaimedNeedsNoRoom(t *testing.T) {
	f := roomFacts(nil, 100, 20)
	for i := range f.Clusters {
		f.Clusters[i].Claimed = true
	}
	for i := range f.Evictions {
		f.Evictions[i].Begun = &rollout.Verdict{Code: rollout.NoBudget}
	}
	f.claimRoom = 0
	plan := f.decidePlan()
	assert.Equal(t, rollout.Decide(f.Facts), plan)
	assert.Len(t, plan.Evictions, 20)
}

// A rollout that has no room at all does not wait in silence: it tries, and the API server says what is wrong.
func TestARolloutWithoutRoomTries(t *testing.T) {
	f := roomFacts(map[string]string{"example.com/a": strings.Repeat("m", 255*1024)}, 10, 0)
	assert.Len(t, f.decidePlan().Steps, 1)
	f = roomFacts(map[string]string{"example.com/a": strings.Repeat("m", 255*1024)}, 0, 10)
	assert.Len(t, f.decidePlan().Evictions, 1)
}
