package picture

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
)

func memberIn(name, region, healthy string) Member {
	return Member{Member: fleetview.Member{Name: name, Joined: "True", Healthy: healthy, Labels: map[string]string{"region": region, "name": name, "kind": "edge"}}}
}

func TestAMapGroupsClustersByALabel(t *testing.T) {
	changing := memberIn("c", "us", "True")
	changing.Changing = []string{"web-17"}
	members := []Member{memberIn("a", "eu", "True"), memberIn("b", "us", "False"), changing, memberIn("d", "", "True")}
	m := MapOf(members, "", nil)
	assert.Equal(t, "region", m.By)
	assert.Equal(t, []string{"region", "name"}, m.Labels, "what all have alike tells nothing apart")
	require.Len(t, m.Groups, 3)
	assert.Equal(t, []string{"", "eu", "us"}, []string{m.Groups[0].Name, m.Groups[1].Name, m.Groups[2].Name})
	us := m.Groups[2]
	assert.Equal(t, []Count{{"healthy", updaterun.PhaseSucceeded, 1}, {"unhealthy", updaterun.PhaseFailed, 1}}, us.Counts)
	require.Len(t, us.Places, 2)
	assert.Equal(t, "group2m0", us.Places[0].ID)
	assert.Equal(t, "/map?by=region&is=us", us.Path)
	only := "eu"
	assert.Len(t, MapOf(members, "region", &only).Groups, 1)
	assert.Len(t, MapOf(members, "no such label", nil).Groups, 1, "all are alike")
	assert.Empty(t, MapOf(nil, "", nil).Groups)
}

func TestAMapOfManyShowsThoseThatStandOut(t *testing.T) {
	var members []Member
	for i := range 5000 {
		health := "True"
		if i%100 == 0 {
			health = "False"
		}
		members = append(members, memberIn(fmt.Sprintf("%s-%d", strings.Repeat("n", 240), i), fmt.Sprint("r", i%70), health))
	}
	m := MapOf(members, "region", nil)
	require.Len(t, m.Groups, maxGroups)
	total := 0
	for _, group := range m.Groups {
		total += group.Total
		assert.LessOrEqual(t, len(group.Places), placesOfGroup)
		assert.Equal(t, group.Total, group.More+len(group.Places))
	}
	assert.Equal(t, 5000, total)
	assert.NotContains(t, m.Labels, "name", "each has another")
}

func TestAMatrixShowsWhoHasWhichVersion(t *testing.T) {
	members := []Member{memberIn("a", "eu", "True"), memberIn("b", "us", "True"), memberIn("c", "us", "True"), memberIn("d", "us", "True")}
	web := Placed{Name: "web", Path: "/placements/web", Latest: 7, Has: map[string]int{"a": 7, "b": 6, "c": 2}, Changing: map[string]bool{"b": true}}
	v := VersionsOf([]Placed{web}, members, "region")
	require.Len(t, v.Columns, 4)
	assert.Equal(t, []Cell{
		{"cell0x0", "7", "latest", false}, {"cell0x1", "6", "behind", true}, {"cell0x2", "2", "older", false}, {"cell0x3", "", "none", false},
	}, v.Rows[0].Cells)

	has := map[string]int{}
	for i := range 100 {
		name := fmt.Sprint("m", i)
		members = append(members, memberIn(name, fmt.Sprint("r", i%50), "True"))
		has[name] = 5 + i/50
	}
	v = VersionsOf([]Placed{{Name: "web", Latest: 7, Has: has}}, members, "region")
	assert.True(t, v.Grouped)
	assert.Len(t, v.Columns, maxColumns)
	assert.Equal(t, "others", v.Columns[maxColumns-1].Name)
	assert.Equal(t, Cell{"cell0x1", "6: 1, 5: 1", "mixed", false}, v.Rows[0].Cells[1])
}
