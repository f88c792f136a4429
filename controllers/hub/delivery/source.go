package delivery

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/controllers/informer"
)

// HubSource has the records of a hub. The API server itself leaves out those that are complete, if it can.
type HubSource struct {
	Config *rest.Config
	// Live reads past every cache.
	Live   client.Reader
	Scheme *runtime.Scheme
	Mapper meta.RESTMapper
}

// errNotSynced says that a watch has ended before it had begun.
var errNotSynced = errors.New("the records could not be listed in time")

// Watch reports records until the context ends.
func (s HubSource) Watch(ctx context.Context, seen func(*fleetflowv1alpha1.AuditRecord), gone func(name string)) error {
	incomplete := fields.OneTermNotEqualSelector("status.complete", "true")
	err := s.Live.List(ctx, &fleetflowv1alpha1.AuditRecordList{}, client.MatchingFieldsSelector{Selector: incomplete}, client.Limit(1))
	if apierrors.IsBadRequest(err) {
		incomplete = nil // an API server before Kubernetes 1.31 selects by no fields of these kinds
	} else if err != nil {
		return fmt.Errorf("listing the records that are to be delivered: %w", err)
	}
	records, err := cache.New(s.Config, cache.Options{
		Scheme: s.Scheme, Mapper: s.Mapper, NewInformer: informer.New, DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{&fleetflowv1alpha1.AuditRecord{}: {Field: incomplete}},
	})
	if err != nil {
		return fmt.Errorf("preparing to watch records: %w", err)
	}
	of, err := records.GetInformer(ctx, &fleetflowv1alpha1.AuditRecord{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("preparing to watch records: %w", err)
	}
	registered, err := of.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { tell(o, seen) },
		UpdateFunc: func(_, o any) { tell(o, seen) },
		DeleteFunc: func(o any) {
			if last, is := o.(toolscache.DeletedFinalStateUnknown); is {
				o = last.Obj
			}
			tell(o, func(record *fleetflowv1alpha1.AuditRecord) { gone(record.Name) })
		},
	})
	if err != nil {
		return fmt.Errorf("watching records: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- records.Start(ctx) }()
	if !toolscache.WaitForCacheSync(ctx.Done(), registered.HasSynced) {
		return errors.Join(errNotSynced, <-ended)
	}
	return nil
}

func tell(o any, of func(*fleetflowv1alpha1.AuditRecord)) {
	if record, is := o.(*fleetflowv1alpha1.AuditRecord); is {
		of(record)
	}
}
