package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

func TestDiscoverAsksTheHubEachTime(t *testing.T) {
	var kind atomic.Value
	kind.Store("Gadget")
	served := func(path string) any {
		switch path {
		case "/api":
			return metav1.APIVersions{Versions: []string{"v1"}}
		case "/api/v1":
			return metav1.APIResourceList{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "things", Kind: kind.Load().(string)}}}
		default:
			return metav1.APIGroupList{}
		}
	}
	hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		assert.NoError(t, json.NewEncoder(w).Encode(served(r.URL.Path)))
	}))
	defer hub.Close()
	folder := t.TempDir()
	for _, want := range []string{"Gadget", "Widget"} {
		kind.Store(want)
		f := NewFactory()
		f.Flags.APIServer = &hub.URL
		f.Flags.CacheDir = &folder
		_, lists, err := f.Discover()
		require.NoError(t, err)
		require.Len(t, lists, 1)
		assert.Equal(t, want, lists[0].APIResources[0].Kind, "the answer of an earlier command is in the cache on disk")
	}
}

func TestAMissingKubeconfigIsNamed(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none")
	t.Setenv("KUBECONFIG", missing)
	_, err := NewFactory().Client()
	assert.EqualError(t, err, missing+" names no cluster: set KUBECONFIG, or name the hub's kubeconfig with --kubeconfig")
}

// TestInAPodTheAccountOfThePodCounts holds what client-go asks before it takes the account of a Pod: that a configuration without a
// cluster is the same as none.
func TestInAPodTheAccountOfThePodCounts(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	for name, args := range map[string][]string{"as it comes": nil, "with a limit": {"--request-timeout=7s"}} {
		t.Run(name, func(t *testing.T) {
			f := NewFactory()
			flags := pflag.NewFlagSet("", pflag.ContinueOnError)
			f.AddFlags(flags)
			require.NoError(t, flags.Parse(args))
			f.Flags.WrapConfigFn = nil
			config, err := f.Flags.ToRESTConfig()
			require.NoError(t, err)
			rules := clientcmd.ClientConfigLoadingRules{DefaultClientConfig: &clientcmd.DefaultClientConfig} // as the flags have them
			assert.True(t, rules.IsDefaultConfig(config), "%+v", config)
		})
	}
}

func TestRequestsWaitAsLongAsTheUserSays(t *testing.T) {
	for name, test := range map[string]struct {
		args          []string
		reads, writes time.Duration
		refused       string
	}{
		"nothing is said":         {reads: 20 * time.Second, writes: 75 * time.Second},
		"a duration":              {args: []string{"--request-timeout=7s"}, reads: 7 * time.Second, writes: 7 * time.Second},
		"seconds, as kubectl has": {args: []string{"--request-timeout=3"}, reads: 3 * time.Second, writes: 3 * time.Second},
		"without end":             {args: []string{"--request-timeout=0"}},
		"no duration":             {args: []string{"--request-timeout=soon"}, refused: `--request-timeout "soon"`},
	} {
		t.Run(name, func(t *testing.T) {
			f := NewFactory()
			flags := pflag.NewFlagSet("", pflag.ContinueOnError)
			f.AddFlags(flags)
			require.NoError(t, flags.Parse(test.args))
			if err := f.Validate(); test.refused != "" {
				require.ErrorContains(t, err, test.refused)
				return
			}
			f.boundRequests(&rest.Config{})
			assert.Equal(t, test.reads, f.patience.Reads)
			assert.Equal(t, test.writes, f.patience.Writes)
		})
	}
}
