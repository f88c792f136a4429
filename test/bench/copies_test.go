//go:build bench

package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/fleetflow/fleetflow/activities/workmodel"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/devfleet/control"
	"github.com/fleetflow/fleetflow/test/devfleet/controlplane"
	"github.com/fleetflow/fleetflow/test/devfleet/state"
)

const (
	// placementKeys is where the hub's etcd keeps everything that belongs to placements.
	placementKeys = "/registry/placement.kubernetes-fleet.io/"
	// putsAtOnce is how many objects go into one transaction: etcd allows 128, and 1.5 MiB.
	putsAtOnce = 100
)

// store is the hub's etcd, asked by its HTTP gateway.
type store struct{ address string }

// pair is an object in etcd; JSON has both parts in base64, as etcd's gateway wants them.
type pair struct {
	Key   []byte `json:"key"`
	Value []byte `json:"value"`
}

func (f *fleet) store() store { return store{"http://" + f.Fleet.Address("hub/etcd")} }

// call asks etcd for something about its keys.
func (s store) call(ctx context.Context, what string, ask, answer any) error {
	return s.ask(ctx, "kv/"+what, ask, answer)
}

// ask asks etcd for one thing.
func (s store) ask(ctx context.Context, what string, ask, answer any) error {
	content, err := json.Marshal(ask)
	if err != nil {
		return fmt.Errorf("encoding a request to etcd: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.address+"/v3/"+what, bytes.NewReader(content))
	if err != nil {
		return fmt.Errorf("making a request to etcd: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("asking etcd for %s: %w", what, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("asking etcd for %s: %s", what, response.Status)
	}
	if err := json.NewDecoder(response.Body).Decode(answer); err != nil {
		return fmt.Errorf("reading etcd's answer to %s: %w", what, err)
	}
	return nil
}

// read returns what is stored under a prefix.
func (s store) read(ctx context.Context, prefix string) ([]pair, error) {
	var answer struct {
		Pairs []pair `json:"kvs"`
	}
	err := s.call(ctx, "range", map[string][]byte{"key": []byte(prefix), "range_end": firstKeyAfter(prefix)}, &answer)
	return answer.Pairs, err
}

// put stores objects, some of them in each transaction.
func (s store) put(ctx context.Context, pairs []pair) error {
	for some := range slices.Chunk(pairs, putsAtOnce) {
		puts := make([]map[string]pair, len(some))
		for i := range some {
			puts[i] = map[string]pair{"requestPut": some[i]}
		}
		if err := s.call(ctx, "txn", map[string]any{"success": puts}, &struct{}{}); err != nil {
			return err
		}
	}
	return nil
}

// remove deletes what is stored under a prefix.
func (s store) remove(ctx context.Context, prefix string) error {
	return s.call(ctx, "deleterange", map[string][]byte{"key": []byte(prefix), "range_end": firstKeyAfter(prefix)}, &struct{}{})
}

// firstKeyAfter is the first key behind all that begin with a prefix.
func firstKeyAfter(prefix string) []byte {
	end := []byte(prefix)
	end[len(end)-1]++
	return end
}

// copyPlacement gives a fleet so many further placements like one that is at rest, until they are removed: everything that belongs to it
// is stored again under names and UIDs of its own, straight in etcd. Rolled out, 100,000 bindings would take half an hour or more, and
// what an agent finds when it starts is the same. The name of the placement must be the prefix and 0000, and the content that it
// selects must not be named after it: the copies select the same. Hub agent and API server rest meanwhile: one would act on what
// is there in part, the other would keep an event of each object beside the object. The controller manager rests until the copies are
// removed: its garbage collector asks for the owners of objects that appear by themselves, and the agent would be taken for the one that asks.
func (f *fleet) copyPlacement(t *testing.T, prefix string, copies int) (remove func()) {
	t.Helper()
	ctx := within(t, patience)
	for _, process := range []string{controlplane.HubAgent, controllerManager, apiServer} {
		require.NoError(t, f.Control.Do(ctx, control.Stop, process))
	}
	began := time.Now()
	template := prefix + "0000"
	all, err := f.store().read(ctx, placementKeys)
	require.NoError(t, err)
	all = slices.DeleteFunc(all, func(p pair) bool { return !bytes.Contains(p.Key, []byte(template)) })
	uids := make([]string, len(all))
	prefixes := map[string]bool{}
	bound := slices.IndexFunc(all, func(p pair) bool { return bytes.Contains(p.Key, []byte("/clusterresourcebindings/")) })
	require.GreaterOrEqual(t, bound, 0, "the placement has no binding")
	for i, p := range all {
		var object metav1.PartialObjectMetadata
		require.NoError(t, json.Unmarshal(p.Value, &object))
		uids[i] = string(object.UID)
		before, _, _ := strings.Cut(string(p.Key), template)
		prefixes[before+prefix] = true
	}
	for i := range copies {
		replacements := []string{template, fmt.Sprintf("%s%04d", prefix, i+1)}
		for _, uid := range uids {
			replacements = append(replacements, uid, string(uuid.NewUUID()))
		}
		// Works bear the revision of their binding, which is that of all clusters: a hash of names.
		named := strings.NewReplacer(replacements...).Replace(string(all[bound].Value))
		replacements = append(replacements, revisionOf(t, all[bound].Value), revisionOf(t, []byte(named)))
		anew := strings.NewReplacer(replacements...)
		pairs := make([]pair, len(all))
		for j, p := range all {
			pairs[j] = pair{Key: []byte(anew.Replace(string(p.Key))), Value: []byte(anew.Replace(string(p.Value)))}
		}
		require.NoError(t, f.store().put(ctx, pairs))
	}
	t.Logf("%d copies of %s, of %d objects each, are stored after %s", copies, template, len(all), seconds(time.Since(began)))
	require.NoError(t, f.Control.Do(ctx, control.Start, apiServer))
	require.NoError(t, f.Control.WaitReady(ctx, apiServer))
	f.awaitIdle(t)
	require.NoError(t, f.Control.Do(ctx, control.Start, controlplane.HubAgent))
	require.NoError(t, f.Control.WaitReady(ctx, controlplane.HubAgent))
	return func() { f.removeCopies(t, slices.Collect(maps.Keys(prefixes))) }
}

// revisionOf is the revision of a binding without overrides.
func revisionOf(t *testing.T, content []byte) string {
	t.Helper()
	binding := &placementv1beta1.ClusterResourceBinding{}
	require.NoError(t, json.Unmarshal(content, binding))
	return workmodel.Revision(binding)
}

const (
	// mostCopied is how many placements there are at most, each on 100 clusters.
	mostCopied = 1000
	// memoryPerBinding is what a binding and its Work take in the API server at its peak, etcd's part included.
	memoryPerBinding = 400 << 10
	// memoryShare is how much of the machine's memory, in percent, they may take.
	memoryShare = 75
)

// copiesThatFit is how many placements on 100 clusters each the machine has memory for: it runs the API server, too.
func copiesThatFit(t *testing.T) int {
	t.Helper()
	content, err := os.ReadFile("/proc/meminfo")
	require.NoError(t, err, "memory is read as Linux tells it")
	var kibibytes int
	_, err = fmt.Sscanf(string(content), "MemTotal: %d kB", &kibibytes)
	require.NoError(t, err)
	return min(mostCopied, kibibytes<<10/100*memoryShare/memoryPerBinding/few)
}

// removeCopies removes what copyPlacement has stored, and the placement that it has copied.
func (f *fleet) removeCopies(t *testing.T, prefixes []string) {
	ctx := t.Context()
	require.NoError(t, f.Control.Do(ctx, control.Stop, controlplane.HubAgent))
	for _, prefix := range prefixes {
		require.NoError(t, f.store().remove(ctx, prefix))
	}
	f.awaitIdle(t)
	require.NoError(t, f.Control.Do(ctx, control.Start, controllerManager))
	require.NoError(t, f.Control.Do(ctx, control.Start, controlplane.HubAgent))
}

// apiServer and controllerManager are the hub's.
const (
	apiServer         = state.Hub + "/apiserver"
	controllerManager = state.Hub + "/controller-manager"
)

// idleShare is how much of a core a process takes at most that has caught up.
const idleShare = 0.2

// awaitIdle waits until the API server has taken in what was stored behind its back, and the members what it told them.
func (f *fleet) awaitIdle(t *testing.T) {
	awaitIdle(t, "the API server and the members", func() time.Duration { return f.busy(t) })
}

// awaitAgentIdle waits until the hub agent has looked at all that it was told of.
func (f *fleet) awaitAgentIdle(t *testing.T) {
	awaitIdle(t, "the hub agent", func() time.Duration {
		return time.Duration(cpuTime(t, f.agent(t).PID) * float64(time.Second))
	})
}

// awaitIdle waits until what has had so much CPU time gets hardly any more.
func awaitIdle(t *testing.T, what string, had func() time.Duration) {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		before := had()
		pause(quietFor)
		if float64(had()-before) < idleShare*float64(quietFor) {
			return
		}
	}
	t.Errorf("%s had still much to do after %s", what, patience)
}
