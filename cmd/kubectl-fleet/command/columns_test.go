package command

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
)

// added has a table of columns one more for the time of a test.
func added[R any](t *testing.T, columns *[]fleetview.Column[R], column fleetview.Column[R]) {
	t.Helper()
	before := *columns
	*columns = append(slices.Clip(before), column)
	t.Cleanup(func() { *columns = before })
}

func TestAColumnIsOnePlace(t *testing.T) {
	shout := func(name string) string { return strings.ToUpper(name) }
	added(t, &fleetview.RunColumns, fleetview.Column[fleetview.Run]{
		Name: "Loud", Page: "Loudly", Text: func(r fleetview.Run) string { return shout(r.Name) },
	})
	added(t, &fleetview.PlacementColumns, fleetview.Column[fleetview.Placement]{
		Name: "Loud", Wide: true, Page: "Loudly", Text: func(p fleetview.Placement) string { return shout(p.Name) },
	})
	added(t, &fleetview.EntryColumns, fleetview.Column[fleetview.Entry]{
		Name: "Loud", Page: "Loudly", File: "loud", Text: func(e fleetview.Entry) string { return shout(e.Name) },
	})
	c := newConsole(t, approvalFleet()...)
	b := newBrowser(t, inMemory(approvalFleet()...), testingclock.NewFakeClock(now))
	for line, heading := range map[string]bool{
		"get runs": true, "get runs -o wide": true, "get placements": false, "get placements -o wide": true, "history placement/web": true,
	} {
		require.NoError(t, c.run(strings.Fields(line)...))
		assert.Equal(t, heading, strings.Contains(c.Out.String(), "LOUD"), line)
		assert.Equal(t, heading, strings.Contains(c.Out.String(), "WEB"), line)
	}
	for _, path := range []string{"/runs", "/placements", "/placements/web", "/placements/web/history"} {
		answer := b.get(path)
		require.Equal(t, http.StatusOK, answer.Code, path)
		assert.Regexp(t, `<th scope="col">(<a href="[?]sort=Loudly">)?Loudly`, answer.Body.String(), path)
		assert.Contains(t, answer.Body.String(), `<td data-th="Loudly">WEB`, path)
	}
	file := b.get("/placements/web/history?format=csv").Body.String()
	assert.Contains(t, file, "comment,loud\n")
	assert.Contains(t, file, ",WEB")
}
