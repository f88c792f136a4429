package agent

import (
	"bytes"
	"context"
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

func TestAProbeThatFailsIsLoggedByWhatIsMissing(t *testing.T) {
	var out bytes.Buffer
	log := (&Log{format: jsonFormat}).Logger(&out)
	log.WithName("controller-runtime").WithName("healthz").Info("healthz check failed", "statuses", []struct{ name string }{{"caches"}})
	assert.Empty(t, out.String(), "it names nothing")
	answers := []error{nil, errors.New("connection refused"), errors.New("connection refused"), nil, nil}
	asked := 0
	run := Check{Name: "hub-api", Run: func(context.Context) error {
		asked++
		return answers[asked-1]
	}}.told(log)
	for _, want := range answers {
		assert.Equal(t, want, run(t.Context()))
	}
	var told []string
	for line := range bytes.SplitSeq(bytes.TrimSpace(out.Bytes()), []byte("\n")) {
		said := map[string]any{}
		require.NoError(t, json.Unmarshal(line, &said))
		told = append(told, fmt.Sprint(said["msg"], " ", said["name"], " ", said["cause"]))
	}
	assert.Equal(t, []string{"Not ready hub-api connection refused", "Ready again hub-api <nil>"}, told)
}
