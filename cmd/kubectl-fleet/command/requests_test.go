package command

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
)

// fleetKinds are the kinds that `get` reads, by group version.
var fleetKinds = map[string]map[string]string{
	"cluster.kubernetes-fleet.io/v1beta1": {"memberclusters": "MemberCluster"},
	"placement.kubernetes-fleet.io/v1beta1": {
		"clusterresourceplacements": "ClusterResourcePlacement", "resourceplacements": "ResourcePlacement",
		"clusterstagedupdateruns": "ClusterStagedUpdateRun", "stagedupdateruns": "StagedUpdateRun",
	},
}

// answerAsHub answers as a hub without objects does, which lets a user read the kinds of the fleet, and those alone.
func answerAsHub(w http.ResponseWriter, path string) {
	w.Header().Set("Content-Type", "application/json")
	at := strings.Split(strings.TrimPrefix(path, "/apis/"), "/")
	if len(at) != 3 || fleetKinds[at[0]+"/"+at[1]][at[2]] == "" {
		w.WriteHeader(http.StatusForbidden)
		_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden})
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": at[0] + "/" + at[1], "kind": fleetKinds[at[0]+"/"+at[1]][at[2]] + "List", "items": []any{}})
}

// What makes `kubectl fleet get` fast on a hub that is far away, or that serves hundreds of kinds: it asks for what it shows, and neither
// for the kinds that the hub serves nor for their schemas.
func TestGetAsksForNothingButWhatItShows(t *testing.T) {
	var lock sync.Mutex
	asked := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lock.Lock()
		asked[r.URL.Path]++
		lock.Unlock()
		answerAsHub(w, r.URL.Path)
	}))
	t.Cleanup(server.Close)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(kubeconfig, fmt.Appendf(nil, `{apiVersion: v1, kind: Config, current-context: hub,
clusters: [{name: hub, cluster: {server: %q}}], contexts: [{name: hub, context: {cluster: hub}}]}`, server.URL), 0o600))
	for sentence, test := range map[string]struct {
		args []string
		want []string
	}{
		"everything": {nil, []string{
			"/apis/cluster.kubernetes-fleet.io/v1beta1/memberclusters",
			"/apis/placement.kubernetes-fleet.io/v1beta1/clusterresourceplacements",
			"/apis/placement.kubernetes-fleet.io/v1beta1/clusterstagedupdateruns", "/apis/placement.kubernetes-fleet.io/v1beta1/resourceplacements",
			"/apis/placement.kubernetes-fleet.io/v1beta1/stagedupdateruns",
		}},
		"members": {[]string{"members"}, []string{"/apis/cluster.kubernetes-fleet.io/v1beta1/memberclusters"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			clear(asked)
			factory := cli.NewFactory()
			factory.Flags.KubeConfig = &kubeconfig
			streams, _, out, _ := genericiooptions.NewTestIOStreams()
			cmd := NewGet(factory, streams)
			cmd.SetArgs(append(test.args, "-o", "json"))
			require.NoError(t, cmd.Execute(), "asked: %v", asked)
			assert.Contains(t, out.String(), `"kind": "List"`)
			var paths []string
			for path := range asked {
				paths = append(paths, path)
			}
			assert.ElementsMatch(t, test.want, paths)
		})
	}
}
