package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// mapAgainst asks an API server for a kind of the fleet, as the agent does first of all.
func mapAgainst(t *testing.T, answer http.HandlerFunc) error {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	mapper, err := apiutil.NewDynamicRESTMapper(&rest.Config{Host: server.URL}, server.Client())
	require.NoError(t, err)
	kind := placementv1beta1.Scope{}.PlacementKind()
	_, err = mapper.RESTMapping(kind.GroupKind(), kind.Version)
	require.Error(t, err)
	return fmt.Errorf("indexing placements: %w", err)
}

func TestAHubWithoutTheKindsOfTheFleetIsToldHowToGetThem(t *testing.T) {
	for sentence, answer := range map[string]http.HandlerFunc{
		"of today": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
			group := map[string]string{"/api": "", "/apis": "apps"}[r.URL.Path]
			fmt.Fprintf(w, `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[{"metadata":{"name":%q},"versions":[{"version":"v1","resources":[]}]}]}`, group)
		},
		"that lists each group by itself": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			switch r.URL.Path {
			case "/api":
				fmt.Fprint(w, `{"kind":"APIVersions","versions":["v1"]}`)
			case "/apis":
				fmt.Fprint(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"}]}]}`)
			default:
				http.NotFound(w, r)
			}
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			err := explainMissingKinds(mapAgainst(t, answer))
			assert.ErrorContains(t, err, "the hub does not serve all kinds of the fleet: install their CustomResourceDefinitions with kubectl fleet init")
			assert.ErrorContains(t, err, "indexing placements")
		})
	}
	away := mapAgainst(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	assert.Equal(t, away, explainMissingKinds(away), "an API server that is away misses nothing")
	other := errors.New("no such file")
	assert.Equal(t, other, explainMissingKinds(other))
	assert.NoError(t, explainMissingKinds(nil))
}
