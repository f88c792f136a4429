//go:build integration

package takeover

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	"github.com/fleetflow/fleetflow/test/devfleet/state"
	"github.com/fleetflow/fleetflow/test/kubefleet"
	"github.com/fleetflow/fleetflow/test/onemember"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// scaleEnv says how many placements, on as many clusters, are adopted; without it they are not.
const scaleEnv = "TAKEOVER_SCALE"

// multiplied makes n placements on n clusters of the recorded placement team-namespace and of member-1.
func multiplied(n int) func([]*unstructured.Unstructured) []*unstructured.Unstructured {
	return func(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
		var all []*unstructured.Unstructured
		copyOf := func(object *unstructured.Unstructured, replacements ...string) {
			text, _ := object.MarshalJSON()
			made := &unstructured.Unstructured{}
			_ = made.UnmarshalJSON([]byte(strings.NewReplacer(replacements...).Replace(string(text))))
			made.SetUID("") // nothing refers to it
			all = append(all, made)
		}
		for _, object := range objects {
			of := object.GetLabels()[placementv1beta1.ParentPlacementLabel] == "team-namespace"
			switch kind := object.GetKind(); {
			case kind == "Namespace" && object.GetName() == "team":
				copyOf(object)
			case kind == "MemberCluster" && object.GetName() == "member-1":
				for cluster := range n {
					copyOf(object, "member-1", fmt.Sprintf("member-x%d", cluster))
				}
			case kind == "ClusterResourcePlacement" && object.GetName() == "team-namespace",
				strings.HasSuffix(kind, "Snapshot") && of:
				for placement := range n {
					copyOf(object, "team-namespace", fmt.Sprintf("team-%d", placement))
				}
			case (kind == "ClusterResourceBinding" || kind == "Work") && of && strings.Contains(object.GetName()+object.GetNamespace(), "member-1"):
				for placement := range n {
					for cluster := range n {
						copyOf(object, "team-namespace", fmt.Sprintf("team-%d", placement), "member-1", fmt.Sprintf("member-x%d", cluster))
					}
				}
			}
		}
		return all
	}
}

// loadMany loads objects as from a backup, the owners first and then many at a time.
func (r *rig) loadMany(change func([]*unstructured.Unstructured) []*unstructured.Unstructured) {
	r.Helper()
	objects, err := kubefleet.Hub()
	require.NoError(r, err)
	objects = identifyAgents(change(objects))
	many := kubefleet.OfKinds(objects, "ClusterResourceBinding", "Work")
	few := slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool { return slices.Contains(many, o) })
	require.NoError(r, kubefleet.Restore(r.ctx, r.configs[state.Hub], few))
	var group errgroup.Group
	for chunk := range slices.Chunk(many, len(many)/32+1) {
		group.Go(func() error { return kubefleet.Restore(r.ctx, r.configs[state.Hub], chunk) })
	}
	require.NoError(r, group.Wait())
}

func TestManyBindingsAreAdopted(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv(scaleEnv))
	if err != nil {
		t.Skip("set " + scaleEnv + "=100 for 100 placements on 100 clusters")
	}
	r := newRig(t, 0)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	r.ctx = ctx
	began := time.Now()
	r.loadMany(multiplied(n))
	t.Logf("%d objects were loaded in %s", n*n*2, time.Since(began))
	writes := r.record()
	before, err := onemember.CallsOf(r.ctx, r.configs[state.Hub])
	require.NoError(t, err)
	usedBefore := r.cpuSeconds(t)
	started := r.startAgents()
	isOfBinding := func(w write) bool {
		return slices.Contains([]string{"ClusterResourceBinding", "Work"}, w.after.GetKind())
	}
	signed := func() int {
		return len(writes.matching(func(w write) bool { return w.after.GetKind() == "Work" && rules.IsSigned(w.after) }))
	}
	for signed() < n*n {
		select {
		case <-writes.news:
		case <-r.ctx.Done():
			require.Fail(t, "not all are adopted", "%d of %d", signed(), n*n)
		}
		<-time.After(200 * time.Millisecond) // what comes together is looked at together
	}
	took := time.Since(started)
	used := r.cpuSeconds(t)
	writes.awaitQuiet(r, quiet)
	after, err := onemember.CallsOf(r.ctx, r.configs[state.Hub])
	require.NoError(t, err)
	calls := after.Since(before)
	made := len(writes.matching(isOfBinding))
	t.Logf("%.2f requests were made for each binding: %s", float64(calls.Total())/float64(n*n), calls)
	load, _ := os.ReadFile("/proc/loadavg")
	t.Logf("%d bindings are adopted %s after the start, with %.2f writes for each; CPU time: API server %.1fs, hub agent %.1fs; load %s",
		n*n, took, float64(made)/float64(n*n), used[0]-usedBefore[0], used[1]-usedBefore[1], load)
	assert.LessOrEqual(t, made, 2*n*n)
	bindingsStay(t, writes)
	noSnapshots(t, writes)
	works := &placementv1beta1.WorkList{}
	require.NoError(t, r.hub().List(r.ctx, works, client.Limit(1)))
	assert.Equal(t, int64(1), works.Items[0].Generation)
}

// cpuSeconds are the CPU times that the hub's API server and the hub agent have taken so far: how long they take depends on what
// else the machine does.
func (r *rig) cpuSeconds(t *testing.T) (used [2]float64) {
	t.Helper()
	transport, err := rest.HTTPClientFor(r.configs[state.Hub])
	require.NoError(t, err)
	for i, url := range []string{r.configs[state.Hub].Host, "http://" + r.fleet.Address("hub-agent/metrics")} {
		response, err := transport.Get(url + "/metrics")
		if err != nil {
			continue // the agent has not started yet
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		_, sample, _ := strings.Cut(string(text), "\nprocess_cpu_seconds_total ")
		sample, _, _ = strings.Cut(sample, "\n")
		used[i], err = strconv.ParseFloat(sample, 64)
		require.NoError(t, err)
	}
	return used
}
