package state

import (
	"net"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSaveThenLoadReturnsTheSameFleet(t *testing.T) {
	fleet := &Fleet{
		Dir: t.TempDir(), Members: 2,
		Ports: map[string]int{"hub/apiserver": 20001}, Tokens: map[string]string{"hub/admin": "t"}, Tools: map[string]string{"etcd": "/e"},
	}
	require.NoError(t, fleet.Save())

	loaded, err := Load(fleet.Dir)
	require.NoError(t, err)
	assert.Empty(t, cmp.Diff(fleet, loaded))

	info, err := os.Stat(fleet.Path(fileName))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm(), "tokens must not be readable by others")
}

func TestLoadOfAnEmptyFolderSaysThereIsNoFleet(t *testing.T) {
	_, err := Load(t.TempDir())
	assert.ErrorIs(t, err, ErrNone)
}

func TestLoadOfABrokenFileNamesIt(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(dir+"/"+fileName, []byte("{"), 0o600))
	_, err := Load(dir)
	assert.ErrorContains(t, err, fileName)
}

func TestNamesAndPaths(t *testing.T) {
	fleet := &Fleet{Dir: "/f", Members: 2, Ports: map[string]int{"hub/apiserver": 20007}}
	assert.Equal(t, []string{"hub", "member-1", "member-2"}, fleet.Clusters())
	assert.Equal(t, "https://127.0.0.1:20007", fleet.APIServerURL(Hub))
	assert.Equal(t, "/f/logs/member-1.etcd.log", fleet.LogFile("member-1/etcd"))
}

func TestTheEnvironmentOfAFleetWithAPrometheusSaysWhereThatIs(t *testing.T) {
	fleet := &Fleet{Dir: "/f", Ports: map[string]int{"prometheus": 20012}}
	assert.NotContains(t, fleet.Environment(), "PROMETHEUS_URL=http://127.0.0.1:20012")
	fleet.Prometheus = true
	assert.Contains(t, fleet.Environment(), "PROMETHEUS_URL=http://127.0.0.1:20012")
}

func TestTheLinkOfTheDashboardIsTheLatestThatItHasPrinted(t *testing.T) {
	fleet := &Fleet{Dir: t.TempDir(), Ports: map[string]int{"dashboard": 8080}}
	assert.Empty(t, fleet.DashboardLink())
	require.NoError(t, os.MkdirAll(fleet.LogDir(), 0o755))
	require.NoError(t, os.WriteFile(fleet.LogFile("dashboard"), []byte("http://127.0.0.1:8080/open?t=1\nThe link works once.\nhttp://127.0.0.1:8080/open?t=2\nhttp://127.0.0.1:80"), 0o600))
	assert.Equal(t, "http://127.0.0.1:8080/open?t=2", fleet.DashboardLink())
	assert.Equal(t, "http://127.0.0.1:8080/runs/web-1", fleet.Dashboard("/runs/web-1"))
}

func TestAssignPorts(t *testing.T) {
	allFree := func(int) bool { return true }
	listeners := []string{"a", "b", "c"}
	start := firstPortOf("/dir")

	for name, tc := range map[string]struct {
		remembered map[string]int
		isFree     func(int) bool
		want       map[string]int
	}{
		"a new fleet gets a row of ports": {
			isFree: allFree,
			want:   map[string]int{"a": start, "b": start + 1, "c": start + 2},
		},
		"remembered ports are kept": {
			remembered: map[string]int{"b": 25000}, isFree: allFree,
			want: map[string]int{"a": start, "b": 25000, "c": start + 1},
		},
		"a remembered port that somebody took is replaced": {
			remembered: map[string]int{"a": 25000}, isFree: func(p int) bool { return p != 25000 },
			want: map[string]int{"a": start, "b": start + 1, "c": start + 2},
		},
		"ports in use are skipped": {
			isFree: func(p int) bool { return p != start+1 },
			want:   map[string]int{"a": start, "b": start + 2, "c": start + 3},
		},
		"a port remembered twice is given once": {
			remembered: map[string]int{"a": 25000, "b": 25000}, isFree: allFree,
			want: map[string]int{"a": 25000, "b": start, "c": start + 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := AssignPorts("/dir", listeners, tc.remembered, tc.isFree)
			require.NoError(t, err)
			assert.Empty(t, cmp.Diff(tc.want, got))
		})
	}
}

func TestAssignPortsFailsWhenTheRangeIsFull(t *testing.T) {
	_, err := AssignPorts("/dir", []string{"a"}, nil, func(int) bool { return false })
	assert.ErrorContains(t, err, "no free port")
}

func TestListenersAreUniqueAndGrowWithTheMembers(t *testing.T) {
	for members := 1; members <= MaxMembers; members++ {
		seen := map[string]bool{}
		for _, listener := range Listeners(members) {
			assert.False(t, seen[listener], "listener %s twice", listener)
			seen[listener] = true
		}
		assert.Len(t, seen, 13+5*members)
	}
	assert.Less(t, len(Listeners(MaxMembers)), portsPerDir, "a fleet fits its block of ports")
}

func TestPortIsFreeSeesAListener(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := listener.Addr().(*net.TCPAddr).Port
	assert.False(t, PortIsFree(port))
	require.NoError(t, listener.Close())
	assert.True(t, PortIsFree(port))
}
