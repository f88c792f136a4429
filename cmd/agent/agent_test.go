package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

func flags() *flag.FlagSet {
	f := flag.NewFlagSet("agent", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	return f
}

func TestTheLogIsOneLineForEachMessage(t *testing.T) {
	var l Log
	f := flags()
	l.Add(f)
	require.NoError(t, f.Parse([]string{"--v=1"}))
	require.NoError(t, l.Check())
	var out bytes.Buffer
	logger := l.Logger(&out)
	logger.V(1).Info("Reported", "work", "w")
	logger.V(2).Info("Not shown")
	line := map[string]any{}
	require.NoError(t, json.Unmarshal(out.Bytes(), &line), "%s", out.String())
	assert.Equal(t, "Reported", line["msg"])
	assert.Equal(t, "w", line["work"])

	require.NoError(t, f.Parse([]string{"--log-format=xml"}))
	assert.ErrorContains(t, l.Check(), "--log-format")
}

func TestProfilesAreServedOnDemandAndToThePodItself(t *testing.T) {
	for sentence, test := range map[string]struct {
		args          []string
		address, want string
	}{
		"none by default":         {},
		"on the loopback address": {args: []string{"--enable-pprof"}, address: "127.0.0.1:6065"},
		"on another port":         {args: []string{"--enable-pprof", "--pprof-port=7000"}, address: "127.0.0.1:7000"},
		"not on any port":         {args: []string{"--pprof-port=70000"}, want: "--pprof-port"},
	} {
		t.Run(sentence, func(t *testing.T) {
			var p Profiles
			f := flags()
			p.Add(f, 6065)
			require.NoError(t, f.Parse(test.args))
			if test.want != "" {
				assert.ErrorContains(t, p.Check(), test.want)
				return
			}
			require.NoError(t, p.Check())
			assert.Equal(t, test.address, p.Address())
		})
	}
}

func TestAnAPIServerIsThereIfItSaysSo(t *testing.T) {
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "/hub/readyz", r.URL.Path)
		assert.Equal(t, "Bearer token", r.Header.Get("Authorization"))
		w.WriteHeader(status)
	}))
	defer server.Close()
	check, err := APIServerAnswers("hub-api", &rest.Config{Host: server.URL + "/hub", BearerToken: "token"})
	require.NoError(t, err)
	assert.Equal(t, "hub-api", check.Name)
	require.NoError(t, check.Run(t.Context()))
	status = http.StatusUnauthorized
	require.ErrorContains(t, check.Run(t.Context()), "401")
	server.Close()
	assert.ErrorContains(t, check.Run(t.Context()), "does not answer")
}

// filled is a cache that has been filled, or not.
type filled struct {
	cache.Cache
	yes bool
}

// WaitForCacheSync waits as a cache does.
func (f filled) WaitForCacheSync(ctx context.Context) bool {
	if !f.yes {
		<-ctx.Done()
	}
	return f.yes
}

func TestCachesAreThereOnceTheyAreFilled(t *testing.T) {
	assert.NoError(t, CachesAreFilled("caches", filled{yes: true}).Run(t.Context()))
	assert.Error(t, CachesAreFilled("caches", filled{}).Run(t.Context()))
}
