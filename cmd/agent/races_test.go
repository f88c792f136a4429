package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A patch tests what it rests on: one that comes too late is no error of anybody.
func TestAWriteThatLostItsRaceIsNoErrorInTheLog(t *testing.T) {
	// As the API server answers a test of a JSON patch that fails.
	tested := apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", "testing value /spec/state failed", 0, false)
	for sentence, test := range map[string]struct {
		err  error
		want string
	}{
		"a test of a patch that failed": {fmt.Errorf("patching binding b: %w", tested), "info"},
		"an update of what was changed": {apierrors.NewConflict(schema.GroupResource{Resource: "bindings"}, "b", errors.New("changed")), "info"},
		"an object that is invalid":     {apierrors.NewInvalid(schema.GroupKind{Kind: "Binding"}, "b", nil), "error"},
		"an API server that is away":    {errors.New("connection refused"), "error"},
		"a write that is forbidden":     {apierrors.NewForbidden(schema.GroupResource{Resource: "bindings"}, "b", errors.New("no")), "error"},
	} {
		t.Run(sentence, func(t *testing.T) {
			var out bytes.Buffer
			log := (&Log{format: jsonFormat}).Logger(&out).WithName("hub").WithValues("placement", "web")
			log.Error(test.err, "Reconciler error")
			slog.New(logr.ToSlogHandler(log)).Error("Activity error.", "Error", test.err)
			lines := bytes.Split(bytes.TrimSpace(out.Bytes()), []byte("\n"))
			require.Len(t, lines, 2)
			for _, line := range lines {
				said := map[string]any{}
				require.NoError(t, json.Unmarshal(line, &said))
				assert.Equal(t, test.want, said["level"], "%s", line)
				assert.Equal(t, "web", said["placement"])
				assert.Contains(t, slices.Collect(maps.Values(said)), any(test.err.Error()), "%s", line)
			}
		})
	}
}

// The line of controller-runtime names no check: ours does, once when it begins to fail and once when it passes again.
func TestAFailingHealthCheckIsNamedOnce(t *testing.T) {
	var out bytes.Buffer
	log := (&Log{format: jsonFormat}).Logger(&out)
	log.WithName("controller-runtime").Info("healthz check failed", "statuses", []struct{ name string }{{"temporal"}})
	check := &toldCheck{log: log, name: "temporal"}
	for _, err := range []error{nil, errors.New("connection refused"), errors.New("connection refused"), nil, nil} {
		check.note(err)
	}
	lines := bytes.Split(bytes.TrimSpace(out.Bytes()), []byte("\n"))
	require.Len(t, lines, 2)
	assert.Contains(t, string(lines[0]), `"msg":"The agent is not ready","check":"temporal","cause":"connection refused"`)
	assert.Contains(t, string(lines[1]), `"msg":"The check passes again","check":"temporal"`)
}
