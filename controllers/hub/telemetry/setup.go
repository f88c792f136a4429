package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
)

// SetupWithManager registers the metrics of the hub's objects and adds what observes them to a manager.
func SetupWithManager(mgr ctrl.Manager, registry prometheus.Registerer, clk clock.PassiveClock) error {
	watcher := NewWatcher(mgr.GetCache())
	watcher.Log = mgr.GetLogger().WithName("update-runs")
	registry.MustRegister(append(watcher.Collectors(), &Collector{
		Cache: mgr.GetClient(), Leading: mgr.Elected(), Clock: clk, Log: mgr.GetLogger().WithName("telemetry"),
	})...)
	return mgr.Add(watcher)
}
