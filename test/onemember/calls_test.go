package onemember

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const before = `# TYPE apiserver_request_total counter
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="configmaps",scope="resource",subresource="",verb="GET",version="v1"} 3
apiserver_request_total{code="404",component="apiserver",dry_run="",group="",resource="configmaps",scope="resource",subresource="",verb="GET",version="v1"} 1
apiserver_request_total{code="200",component="apiserver",dry_run="",group="coordination.k8s.io",resource="leases",scope="resource",subresource="",verb="PUT",version="v1"} 9
apiserver_request_total{code="200",component="apiserver",dry_run="",group="p",resource="works",scope="resource",subresource="status",verb="PATCH",version="v1"} 2
apiserver_request_total{code="200",component="apiserver",dry_run="All",group="",resource="configmaps",scope="resource",subresource="",verb="PATCH",version="v1"} 5
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="configmaps",scope="cluster",subresource="",verb="WATCH",version="v1"} 6
something_else{verb="GET"} 7
`

func TestCallsAreAddedUpOverTheirCodes(t *testing.T) {
	earlier, err := readCalls(strings.NewReader(before))
	require.NoError(t, err)
	assert.Equal(t, Calls{{"GET", "configmaps"}: 4, {Rehearsal, "configmaps"}: 5, {"PATCH", "works/status"}: 2}, earlier)
	assert.Equal(t, "2 PATCH works/status", earlier.Writes().String())
	assert.Equal(t, 2, earlier.Of("works").Total(), "subresources count with their resource")

	later, err := readCalls(strings.NewReader(strings.ReplaceAll(before, `verb="GET",version="v1"} 3`, `verb="GET",version="v1"} 5`)))
	require.NoError(t, err)
	assert.Equal(t, Calls{{"GET", "configmaps"}: 2}, later.Since(earlier))
}

func TestACountThatCannotBeReadIsAnError(t *testing.T) {
	_, err := readCalls(strings.NewReader(`apiserver_request_total{verb="GET"} many`))
	assert.ErrorContains(t, err, "many")
}
