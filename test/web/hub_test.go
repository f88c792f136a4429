package web

import (
	"context"
	"errors"
	"sync"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/test/fixture"
)

// hub is a hub in memory. Its own client is that of what runs there, and always gets an answer.
type hub struct {
	client.WithWatch

	mutex   sync.Mutex
	away    bool
	watches []watch.Interface
}

var errAway = errors.New("dial tcp 192.0.2.1:6443: connect: connection refused")

func newHub(t testing.TB, objects ...client.Object) *hub {
	t.Helper()
	scheme := cli.Scheme()
	mapper := meta.NewDefaultRESTMapper(nil)
	for kind := range scheme.AllKnownTypes() {
		mapper.Add(kind, meta.RESTScopeRoot)
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithObjects(objects...).WithStatusSubresource(objects...)
	// API servers select by name without being told.
	builder = builder.WithIndex(&coordinationv1.Lease{}, "metadata.name", func(lease client.Object) []string { return []string{lease.GetName()} })
	return &hub{WithWatch: fixture.SelectRecords(builder).Build()}
}

// goAway ends all watches, and leaves requests without an answer until the hub comes back.
func (h *hub) goAway() {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.away = true
	for _, w := range h.watches {
		w.Stop()
	}
	h.watches = nil
}

func (h *hub) comeBack() {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.away = false
}

// reach says whether the hub answers.
func (h *hub) reach() error {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.away {
		return errAway
	}
	return nil
}

// as is the client of a user, who may do everything, or only look.
func (h *hub) as(user string, mayAct bool) client.WithWatch {
	refuse := func(object client.Object) error {
		if err := h.reach(); err != nil || mayAct {
			return err
		}
		return apierrors.NewForbidden(schema.GroupResource{}, object.GetName(), errors.New(user+" may only look"))
	}
	return interceptor.NewClient(h.WithWatch, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if err := h.reach(); err != nil {
				return err
			}
			return c.Get(ctx, key, object, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if err := h.reach(); err != nil {
				return err
			}
			return c.List(ctx, list, options...)
		},
		Watch: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
			h.mutex.Lock()
			defer h.mutex.Unlock()
			if h.away {
				return nil, errAway
			}
			w, err := c.Watch(ctx, list, options...)
			if err == nil {
				h.watches = append(h.watches, w)
			}
			return w, err
		},
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			switch review := object.(type) {
			case *authenticationv1.SelfSubjectReview:
				review.Status.UserInfo.Username = user
				return h.reach()
			case *authorizationv1.SelfSubjectAccessReview:
				review.Status.Allowed = mayAct
				return h.reach()
			}
			if err := refuse(object); err != nil {
				return err
			}
			return c.Create(ctx, object, options...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			if err := refuse(object); err != nil {
				return err
			}
			return c.Delete(ctx, object, options...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			if err := refuse(object); err != nil {
				return err
			}
			return fixture.PatchAsAPIServer(ctx, c, object, patch, options...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, subresource string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			if err := refuse(object); err != nil {
				return err
			}
			return c.SubResource(subresource).Patch(ctx, object, patch, options...)
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, subresource string, object client.Object, options ...client.SubResourceUpdateOption) error {
			if err := refuse(object); err != nil {
				return err
			}
			return c.SubResource(subresource).Update(ctx, object, options...)
		},
	})
}

// run is a run as it is stored.
func (h *hub) run(t testing.TB, name string) *placementv1beta1.ClusterStagedUpdateRun {
	t.Helper()
	run := &placementv1beta1.ClusterStagedUpdateRun{}
	if err := h.Get(t.Context(), client.ObjectKey{Name: name}, run); err != nil {
		t.Fatalf("reading run %s: %v", name, err)
	}
	return run
}

// change changes the status of a run, as the engine does.
func (h *hub) change(t testing.TB, name string, change func(*placementv1beta1.ClusterStagedUpdateRun)) {
	t.Helper()
	run := h.run(t, name)
	change(run)
	if err := h.Status().Update(t.Context(), run); err != nil {
		t.Fatalf("changing run %s: %v", name, err)
	}
}
