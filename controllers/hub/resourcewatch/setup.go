package resourcewatch

import (
	"fmt"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fleetflow/fleetflow/activities/hubread"
	"github.com/fleetflow/fleetflow/activities/snapshot"
	"github.com/fleetflow/fleetflow/controllers/hub/waker"
)

// SetupWithManager adds the watcher to a manager; the poker wakes workflows, and the
// filter is what the operator of the hub keeps from being placed.
func SetupWithManager(mgr ctrl.Manager, poker waker.Poker, clk clock.WithTicker, filter snapshot.Filter) error {
	config := rest.CopyConfig(mgr.GetConfig())
	config.WarningHandlerWithContext = rest.NoWarnings{} // the versions are not our choice
	watches, err := metadata.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("creating the client that watches selected resources: %w", err)
	}
	contents, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("creating the client that watches the content of selected resources: %w", err)
	}
	kinds, err := hubread.NewServedKinds(config, mgr.GetAPIReader(), clk, filter)
	if err != nil {
		return err
	}
	log := mgr.GetLogger().WithName("resourcewatch")
	debouncer := waker.NewDebouncer(poker, clk, log)
	if err := mgr.Add(debouncer); err != nil {
		return fmt.Errorf("adding the debouncer of changed resources: %w", err)
	}
	watcher := &Watcher{
		Placements: mgr.GetClient(),
		Cache:      mgr.GetCache(),
		Kinds:      kinds,
		Metadata:   watches,
		Contents:   contents,
		Namespaces: filter.PlaceableNamespaces(),
		Marker:     debouncer,
		Reports:    mgr.GetClient(),
		Events:     mgr.GetEventRecorder("resource-watch"),
		Clock:      clk,
		Log:        log,
	}
	return mgr.Add(watcher)
}
