package onemember

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWritesAreToldFromDryRuns(t *testing.T) {
	log := strings.Join([]string{
		`{"verb":"patch","requestURI":"/api/v1/namespaces/n/configmaps/early","objectRef":{"resource":"configmaps","namespace":"n","name":"early"},"requestReceivedTimestamp":"2026-01-01T00:00:00.000000Z"}`,
		`{"verb":"patch","user":{"username":"agent"},"requestURI":"/api/v1/namespaces/n/configmaps/a?dryRun=All&force=true","objectRef":{"resource":"configmaps","namespace":"n","name":"a"},"requestReceivedTimestamp":"2026-01-01T00:00:02.000000Z"}`,
		`{"verb":"delete","requestURI":"/api/v1/namespaces/n/configmaps/b","objectRef":{"resource":"configmaps","namespace":"n","name":"b"},"requestObject":{"kind":"DeleteOptions","dryRun":["All"]},"requestReceivedTimestamp":"2026-01-01T00:00:02.000000Z"}`,
		`{"verb":"update","requestURI":"/api/v1/namespaces/n/pods/c/status","objectRef":{"resource":"pods","subresource":"status","namespace":"n","name":"c"},"requestReceivedTimestamp":"2026-01-01T00:00:03.000000Z"}`,
		`{"verb":"update","requestURI":"/api/v1/namespaces/other/pods/d","objectRef":{"resource":"pods","namespace":"other","name":"d"},"requestReceivedTimestamp":"2026-01-01T00:00:03.000000Z"}`,
		`{"verb":"cut o`,
	}, "\n")
	writes, err := readWrites([]byte(log), time.Date(2026, 1, 1, 0, 0, 1, 0, time.UTC), func(w Write) bool { return w.Namespace == "n" })
	require.NoError(t, err)
	assert.Equal(t, []Write{
		{Verb: "patch", Resource: "configmaps", Namespace: "n", Name: "a", User: "agent", Tried: true},
		{Verb: "delete", Resource: "configmaps", Namespace: "n", Name: "b", Tried: true},
		{Verb: "update", Resource: "pods/status", Namespace: "n", Name: "c"},
	}, writes)
	_, err = readWrites([]byte("no JSON\n"), time.Time{}, func(Write) bool { return true })
	assert.Error(t, err)
}
