package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
