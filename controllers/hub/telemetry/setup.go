package telemetry

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
)

// SetupWithManager registers the metrics of the hub's objects and adds what observes them to a manager.
func SetupWithManager(mgr ctrl.Manager, registry prometheus.Registerer, clk clock.PassiveClock) error {
	watcher := NewWatcher(mgr.GetCache())
	collectors := append(watcher.Collectors(), &Collector{
		Cache: mgr.GetClient(), Leading: mgr.Elected(), Clock: clk, Log: mgr.GetLogger().WithName("telemetry"),
	})
	for _, c := range collectors {
		if err := registry.Register(c); err != nil {
			return fmt.Errorf("registering the metrics of the hub's objects: %w", err)
		}
	}
	return mgr.Add(watcher)
}
