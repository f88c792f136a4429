//go:build integration

package outages

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/devfleet/access"
	"github.com/fleetflow/fleetflow/test/devfleet/control"
)

const (
	// patience is how long anything may take; what takes longer never comes.
	patience = 3 * time.Minute
	// lookEvery is how often an observer is asked until it says what it should.
	lookEvery = 500 * time.Millisecond
	// victim is the member of which processes go down.
	victim = "member-2"
	// steady is a placement that is rolled out by itself, staged one that is rolled out by runs.
	steady, staged = "steady", "staged"
)

// Processes that go down. The database of a local fleet's Temporal is a file: it is away while it is locked.
const (
	hubAgent         = "hub-agent"
	memberAgent      = victim + "/agent"
	temporal         = "temporal"
	temporalDatabase = "temporal/database"
	hubAPIServer     = "hub/apiserver"
	hubEtcd          = "hub/etcd"
	memberAPIServer  = victim + "/apiserver"
	memberEtcd       = victim + "/etcd"
	dashboard        = "dashboard"
)

// like are processes without which all say what they say without another one, unless the table has a row.
var like = map[string]string{temporalDatabase: temporal, hubEtcd: hubAPIServer, memberEtcd: memberAPIServer}

// row is what an observer says once a process is down: it matches the expression, and is not what the observer says of a fleet
// in which all is well.
type row struct {
	process, observer, says string
	// goesOn is why the observer goes on as before, if it does. There is nothing that it could know, and others say so; or what it
	// tells of is still looked at.
	goesOn string
}

const (
	nobodyWrites = "a stored condition is as the hub agent left it, and nobody is there to write another one; check, get, status and the alerts say so"
	stillLooked  = "it tells of what does not need the process, and is looked at as before"
)

// table is what everybody says of each process that is down.
var table = []row{
	{hubAgent, check, `✗ hub agent +no hub agent holds the lease: nothing is rolled out(?s:.*)\? temporal +whether Temporal can be reached is not known(?s:.*)exit code 1`, ""},
	{hubAgent, getMembers, `Warning: no hub agent has worked for (?s:.*)member-2 +True +Unknown +\d+s !`, ""},
	{hubAgent, getPlacements, `Warning: no hub agent has worked for .*how it is now is not known`, ""},
	{hubAgent, getRuns, `Warning: no hub agent has worked for `, ""},
	{hubAgent, statusPlacement, `Warning: no hub agent has worked for `, ""},
	{hubAgent, statusRun, `Warning: no hub agent has worked for `, ""},
	{hubAgent, placementsWord, `Available=True`, nobodyWrites},
	{hubAgent, runsWord, `\A\z`, ""},
	{hubAgent, membersWord, `Healthy=True`, nobodyWrites},
	{hubAgent, metricsOfTheHub, `hub agents that lead: none\nTemporal answers: none\nhealthy members: none\nplacements complete: none`, ""},
	{hubAgent, alertsOfTheChart, `FleetflowNoLeader`, ""},
	{hubAgent, pages, `\A no hub agent has worked for \S+: this is what the hub knew then, and how it is now is not known(?s:.*)\n no hub agent has worked for `, ""},

	{memberAgent, check, `✗ members +member-2 has not reported for (?s:.*)exit code 1`, ""},
	{memberAgent, getMembers, `member-2 +True +Unknown +\d+s !`, ""},
	{memberAgent, getPlacements, `steady +PickAll +2 +2/2 +1/2 +not known`, ""},
	{memberAgent, getRuns, `Running`, ""},
	{memberAgent, statusPlacement, `member-2 has not reported since `, ""},
	{memberAgent, statusRun, `member-2 has not reported since `, ""},
	{memberAgent, placementsWord, `Available=Unknown ResourceAvailableUnknown: 1 of 2 cluster\(s\) do not report: member-2 has not reported since `, ""},
	{memberAgent, runsWord, `Progressing=True`, ""},
	{memberAgent, membersWord, `Healthy=Unknown MemberClusterHeartbeatMissed: The member agent has not reported since `, ""},
	{memberAgent, metricsOfTheHub, `hub agents that lead: 1\nTemporal answers: 1\nhealthy members: 1`, ""},
	{memberAgent, alertsOfTheChart, `FleetflowMemberSilent FleetflowMembersUnhealthy`, ""},
	{memberAgent, pages, `Clusters healthy 1/2 (?s:.*)member-2 has not reported since `, ""},

	{temporal, check, `✗ temporal +the hub agent (has not reached|does not reach) Temporal(?s:.*)exit code 1`, ""},
	{temporal, getMembers, `member-2 +True +True`, stillLooked},
	{temporal, getPlacements, `steady +PickAll +2 +2/2 +2/2 +done`, stillLooked},
	{temporal, getRuns, `emporal`, ""},
	{temporal, statusPlacement, `steady`, stillLooked},
	{temporal, statusRun, `emporal`, ""},
	{temporal, placementsWord, `Available=True`, stillLooked},
	{temporal, runsWord, `EngineReachable=False`, ""},
	{temporal, membersWord, `Healthy=True`, stillLooked},
	{temporal, metricsOfTheHub, `Temporal answers: 0`, ""},
	{temporal, alertsOfTheChart, `FleetflowTemporalIsAway`, ""},
	{temporal, pages, `\A Rollouts stand still: .*emporal`, ""},

	{memberAPIServer, check, `✗ members +member-2 is not healthy: (?s:.*)exit code 1`, ""},
	{memberAPIServer, getMembers, `member-2 +True +False`, ""},
	{memberAPIServer, getPlacements, `steady +PickAll +2 +2/2 +1/2 +not known`, ""},
	{memberAPIServer, getRuns, `Running`, ""},
	{memberAPIServer, statusPlacement, `member-2 has not been healthy since `, ""},
	{memberAPIServer, statusRun, `member-2 has not been healthy since `, ""},
	{memberAPIServer, placementsWord, `Available=Unknown ResourceAvailableUnknown: 1 of 2 cluster\(s\) do not report or are not healthy: member-2 has not been healthy since `, ""},
	{memberAPIServer, runsWord, `Progressing=True`, ""},
	{memberAPIServer, membersWord, `Healthy=False MemberClusterOutOfReach: Member cluster is not healthy: The cluster's API server is not ready`, ""},
	{memberAPIServer, metricsOfTheHub, `hub agents that lead: 1\nTemporal answers: 1\nhealthy members: 1`, ""},
	{memberAPIServer, alertsOfTheChart, `FleetflowMembersUnhealthy`, ""},
	{memberAPIServer, pages, `Clusters healthy 1/2 (?s:.*)member-2 has not been healthy since `, ""},

	// The agent asks an API server that answers late: it says that the cluster is not healthy, or says nothing for a while.
	{memberEtcd, check, `✗ members +member-2 (is not healthy: |has not reported for )(?s:.*)exit code 1`, ""},
	{memberEtcd, getMembers, `member-2 +True +(False|Unknown)`, ""},
	{memberEtcd, statusPlacement, `member-2 has not (been healthy|reported) since `, ""},
	{memberEtcd, statusRun, `member-2 has not (been healthy|reported) since `, ""},
	{memberEtcd, placementsWord, `Available=Unknown ResourceAvailableUnknown: 1 of 2 cluster\(s\) do not report(?: or are not healthy)?: member-2 has not (been healthy|reported) since `, ""},
	{memberEtcd, membersWord, `Healthy=(False|Unknown) MemberCluster(Unhealthy|OutOfReach|HeartbeatMissed): `, ""},
	{memberEtcd, pages, `Clusters healthy 1/2 (?s:.*)member-2 has not (been healthy|reported) since `, ""},

	{hubAPIServer, check, `exit code [1-9]`, ""},
	{hubAPIServer, getMembers, `exit code [1-9]`, ""},
	{hubAPIServer, getPlacements, `exit code [1-9]`, ""},
	{hubAPIServer, getRuns, `exit code [1-9]`, ""},
	{hubAPIServer, statusPlacement, `exit code [1-9]`, ""},
	{hubAPIServer, statusRun, `exit code [1-9]`, ""},
	{hubAPIServer, placementsWord, `cannot be read: `, ""},
	{hubAPIServer, runsWord, `cannot be read: `, ""},
	{hubAPIServer, membersWord, `cannot be read: `, ""},
	{hubAPIServer, metricsOfTheHub, `hub agents that lead: none\nTemporal answers: none\nhealthy members: none\nplacements complete: none`, ""},
	{hubAPIServer, alertsOfTheChart, `FleetflowNoLeader`, ""},
	{hubAPIServer, pages, `\A what is shown (of .*)?may be old`, ""},

	// Its API server takes every request, and answers none that needs etcd.
	{hubEtcd, check, `✗ hub +.*the API server has not answered for (?s:.*)\? members +how the members are is not known(?s:.*)exit code 1`, ""},
	{hubEtcd, getMembers, `https://127\.0\.0\.1:\d+/.*: the API server has not answered for (?s:.*)exit code 1`, ""},
	{hubEtcd, getPlacements, `https://127\.0\.0\.1:\d+/.*: the API server has not answered for (?s:.*)exit code 1`, ""},
	{hubEtcd, metricsOfTheHub, `hub agents that lead: (none|0)\nTemporal answers: none\nhealthy members: none\nplacements complete: none`, ""},
	{hubEtcd, statusPlacement, `https://127\.0\.0\.1:\d+/.*: the API server has not answered for (?s:.*)exit code 1`, ""},

	{dashboard, check, `exit code 0`, stillLooked},
	{dashboard, getMembers, `member-2 +True +True`, stillLooked},
	{dashboard, getPlacements, `steady +PickAll +2 +2/2 +2/2 +done`, stillLooked},
	{dashboard, getRuns, `Succeeded`, stillLooked},
	{dashboard, statusPlacement, `steady`, stillLooked},
	{dashboard, statusRun, `✓`, stillLooked},
	{dashboard, placementsWord, `Available=True`, stillLooked},
	{dashboard, runsWord, `Succeeded=True`, stillLooked},
	{dashboard, membersWord, `Healthy=True`, stillLooked},
	{dashboard, metricsOfTheHub, `hub agents that lead: 1`, stillLooked},
	{dashboard, alertsOfTheChart, `no alert`, stillLooked},
	{dashboard, pages, `cannot be read: `, ""},
}

func TestNobodySaysWellOfWhatIsNotLookedAt(t *testing.T) {
	readRules(t)
	everyRow := map[string]row{}
	for _, r := range table {
		require.NotContains(t, everyRow, r.process+r.observer, "two rows")
		everyRow[r.process+r.observer] = r
	}
	f := newFleet(t)
	enterDashboard(t)
	all := observers()
	t.Run("all is well", func(t *testing.T) {
		name := f.roll(t, "first")
		f.awaitRun(t, name)
		for who, o := range all {
			awaitSaid(t, who, o, name, o.well)
		}
	})
	for _, process := range []string{hubAgent, memberAgent, temporal, temporalDatabase, memberAPIServer, memberEtcd, hubAPIServer, hubEtcd, dashboard} {
		t.Run(process, func(t *testing.T) {
			start := f.stop(t, process)
			name := ""
			rows := cmp.Or(like[process], process)
			if rows != hubAPIServer {
				name = f.roll(t, "without-"+regexp.MustCompile(`\W`).ReplaceAllString(process, "-"))
			}
			for who, o := range all {
				r, has := everyRow[process+who]
				if !has {
					r, has = everyRow[rows+who]
				}
				if !assert.True(t, has, "the table does not tell what is said by %s", who) {
					continue
				}
				said := awaitSaid(t, who, o, name, regexp.MustCompile(r.says))
				if r.goesOn == "" {
					assert.NotRegexp(t, o.well, said, "%s says that all is well", who)
				}
			}
			start()
			if name != "" {
				f.awaitRun(t, name)
			}
			if process == dashboard {
				enterDashboard(t)
			}
			for who, o := range all {
				if name != "" || who != getRuns && who != statusRun && who != runsWord && who != pages {
					awaitSaid(t, who, o, name, o.well)
				}
			}
		})
	}
}

// awaitSaid waits until an observer says what matches, and returns it.
func awaitSaid(t *testing.T, who string, o observer, run string, wanted *regexp.Regexp) (said string) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for tick := time.NewTicker(lookEvery); ; <-tick.C {
		said = o.says(t.Context(), run)
		if wanted.MatchString(said) {
			return said
		}
		if time.Now().After(deadline) {
			assert.Regexp(t, wanted, said, who)
			return said
		}
	}
}

// fleet is the fleet with what is placed on it.
type fleet struct {
	// version is the content that the latest run rolls out.
	version int
}

// newFleet has members report every second, and places.
func newFleet(t *testing.T) *fleet {
	t.Helper()
	for _, name := range shared.Fleet.MemberNames() {
		member := &clusterv1beta1.MemberCluster{}
		change(t, name, member, func() { member.Spec.HeartbeatPeriodSeconds = 1 })
	}
	for _, name := range []string{steady, staged} {
		create(t, &corev1.Namespace{ObjectMeta: named(name)})
		content := &corev1.ConfigMap{Data: map[string]string{"version": "0"}}
		content.Name = name
		content.Namespace = name
		create(t, content)
		placement := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: named(name), Spec: placementv1beta1.PlacementSpec{
			ResourceSelectors: []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "Namespace", Name: name}},
			Policy:            &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickAllPlacementType},
		}}
		if name == staged {
			placement.Spec.Strategy = &placementv1beta1.RolloutStrategy{Type: placementv1beta1.ExternalRolloutStrategyType}
		}
		create(t, placement)
	}
	create(t, &placementv1beta1.ClusterStagedUpdateStrategy{ObjectMeta: named(staged), Spec: placementv1beta1.UpdateStrategySpec{Stages: []placementv1beta1.StageConfig{{Name: "all"}}}})
	return &fleet{}
}

func create(t *testing.T, object client.Object) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, access.CreateWhenAdmitted(ctx, shared.Hub, object))
}

// change changes an object of the hub that has a name.
func change(t *testing.T, name string, object client.Object, how func()) {
	t.Helper()
	require.NoError(t, retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := shared.Hub.Get(t.Context(), client.ObjectKey{Namespace: namespaceOf(object, name), Name: name}, object); err != nil {
			return err
		}
		how()
		return shared.Hub.Update(t.Context(), object)
	}))
}

// namespaceOf is the namespace of what has one.
func namespaceOf(object client.Object, name string) string {
	if _, namespaced := object.(*corev1.ConfigMap); namespaced {
		return name
	}
	return ""
}

// roll begins a run with content that no member has yet, and returns its name.
func (f *fleet) roll(t *testing.T, name string) string {
	t.Helper()
	f.version++
	content := &corev1.ConfigMap{}
	change(t, staged, content, func() { content.Data["version"] = fmt.Sprint(f.version) })
	create(t, &placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: named(name), Spec: placementv1beta1.UpdateRunSpec{
		PlacementName: staged, StagedUpdateStrategyName: staged,
	}})
	return name
}

// awaitRun waits until a run has succeeded.
func (f *fleet) awaitRun(t *testing.T, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := access.Await(ctx, shared.Hub, client.ObjectKey{Name: name}, func(run *placementv1beta1.ClusterStagedUpdateRun) string {
		if run == nil || !meta.IsStatusConditionTrue(run.Status.Conditions, placementv1beta1.ConditionTypeSucceeded) {
			return "has not succeeded"
		}
		return ""
	})
	require.NoError(t, err)
}

// stop takes a process down, and returns what starts it, and what needs it, again.
func (f *fleet) stop(t *testing.T, process string) (start func()) {
	t.Helper()
	if process == temporalDatabase {
		return lockDatabase(t)
	}
	do := func(ctx context.Context, verb control.Verb) error {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		return shared.Control.Do(ctx, verb, process)
	}
	require.NoError(t, do(t.Context(), control.Stop))
	started := false
	t.Cleanup(func() {
		if !started {
			assert.NoError(t, do(context.Background(), control.Start))
		}
	})
	return func() {
		t.Helper()
		started = true
		require.NoError(t, do(t.Context(), control.Start))
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		require.NoError(t, shared.Control.WaitReady(ctx, hubAgent, memberAgent))
	}
}

// SQLite agrees on who reads and who writes by locks on these bytes of the file beside a database in WAL mode.
const (
	firstLock = 120
	locks     = 8
)

// lockDatabase locks the database of Temporal for its readers and writers, and returns what unlocks it.
func lockDatabase(t *testing.T) (unlock func()) {
	t.Helper()
	file, err := os.OpenFile(shared.Fleet.TemporalDatabase()+"-shm", os.O_RDWR, 0)
	require.NoError(t, err)
	t.Cleanup(func() { file.Close() }) // unlocks it, too
	for i := range int64(locks) {
		require.NoError(t, syscall.FcntlFlock(file.Fd(), syscall.F_SETLKW, &syscall.Flock_t{Type: syscall.F_WRLCK, Start: firstLock + i, Len: 1}))
	}
	return func() {
		t.Helper()
		require.NoError(t, file.Close())
	}
}
