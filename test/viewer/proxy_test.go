package viewer

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

func TestVerbs(t *testing.T) {
	for target, want := range map[string]string{
		"/api/v1/namespaces":                              "list",
		"/api/v1/namespaces/web":                          "get",
		"/api/v1/namespaces/web/configmaps":               "list",
		"/api/v1/namespaces/web/configmaps/settings":      "get",
		"/apis/example.com/v1/gadgets":                    "list",
		"/apis/example.com/v1/gadgets?watch=true":         "watch",
		"/apis/example.com/v1/gadgets?watch=false":        "list",
		"/apis/example.com/v1/gadgets/one/status":         "get",
		"/apis/example.com/v1/namespaces/web/gadgets/one": "get",
		"/apis/example.com/v1/namespaces/web/gadgets?a=b": "list",
		"/apis/example.com/v1":                            "get",
		"/version":                                        "get",
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target, http.NoBody)
		require.NoError(t, err)
		assert.Equal(t, want, verbOf(request), target)
	}
}

func TestAProxyKeepsWhatIsAskedFor(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "Bearer token", r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusTeapot)
	}))
	defer server.Close()
	proxy, err := NewProxy(&rest.Config{Host: server.URL, BearerToken: "token"})
	require.NoError(t, err)
	defer proxy.Close()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, proxy.WriteKubeconfig(file))
	config, err := clientcmd.BuildConfigFromFlags("", file)
	require.NoError(t, err)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, config.Host+"/api/v1/nodes/one", http.NoBody)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	assert.Equal(t, http.StatusTeapot, response.StatusCode)
	require.Len(t, proxy.Requests(), 1)
	assert.Equal(t, "patch /api/v1/nodes/one", proxy.Requests()[0].Verb+" "+proxy.Requests()[0].Path)
}
