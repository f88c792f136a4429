package command

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/login"
	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/session"
	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/web"
)

// reader is a browser that keeps nothing of what it reads.
type reader struct {
	header http.Header
	read   *atomic.Int64
	first  chan struct{}
	begun  bool
}

func (r *reader) Header() http.Header { return r.header }
func (r *reader) WriteHeader(int)     {}
func (r *reader) Write(text []byte) (int, error) {
	r.read.Add(int64(len(text)))
	return len(text), nil
}

// Flush tells of the first frame.
func (r *reader) Flush() {
	if !r.begun {
		r.begun = true
		close(r.first)
	}
}

// coresUsed returns what the process has had of the processors.
func coresUsed(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// BenchmarkMaps is what 500 open maps of 1,000 clusters take of memory, and of a core while five clusters change each second. That of the
// hub in memory is in it.
func BenchmarkMaps(b *testing.B) {
	const streams, each, lasts = 500, 20, 20 * time.Second
	hub := inMemory(fleetOf(1000, 100)...)
	real := clock.RealClock{}
	users := &everyone{persons: make([]*web.Person, streams/each)}
	for i := range users.persons {
		users.persons[i] = personOn(hub, real, session.Identity{User: "jane@example.com"})
	}
	site, _ := newSite(b, hub, real, func(server *web.Server, _ *login.SignedIn) { server.Access = users })
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	var read atomic.Int64
	for range streams {
		w := &reader{header: http.Header{}, read: &read, first: make(chan struct{})}
		go func() {
			r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/live?page="+url.QueryEscape("/map"), nil)
			r.Host = site.host
			site.handler.ServeHTTP(w, r)
		}()
		<-w.first
	}
	for b.Loop() {
		sent := read.Load()
		used := coresUsed(b)
		begun := time.Now()
		changes := time.NewTicker(time.Second / 5)
		for i := 0; time.Since(begun) < lasts; i++ {
			<-changes.C
			member := &clusterv1beta1.MemberCluster{}
			require.NoError(b, hub.Get(ctx, client.ObjectKey{Name: fmt.Sprintf("edge-%04d", i%1000)}, member))
			member.Status.Conditions = []metav1.Condition{condition(clusterv1beta1.ConditionTypeHealthy, []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse}[i%2], "Flaps", time.Minute)}
			require.NoError(b, hub.Status().Update(ctx, member))
		}
		changes.Stop()
		b.ReportMetric(float64(coresUsed(b)-used)/float64(time.Since(begun)), "cores")
		b.ReportMetric(float64(read.Load()-sent)/streams/lasts.Seconds(), "B/s/page")
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		b.ReportMetric(float64(stats.HeapInuse+stats.StackInuse)/(1<<20), "MB")
	}
}
