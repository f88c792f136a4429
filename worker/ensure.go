package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/durationpb"

	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// Retention of closed executions in a namespace that we create ourselves.
const Retention = 72 * time.Hour

// Ensure creates the Temporal namespace and the search attributes if they are missing. It is called
// on every connect: after the loss of Temporal's database they are gone.
func Ensure(ctx context.Context, c client.Client, namespace string) error {
	ctx, cancel := context.WithTimeout(ctx, setUpTimeout)
	defer cancel()
	if err := ensureNamespace(ctx, c, namespace); err != nil {
		return fmt.Errorf("ensuring Temporal namespace %s: %w", namespace, err)
	}
	if err := ensureAttributes(ctx, c, namespace); err != nil {
		return fmt.Errorf("ensuring the search attributes of Temporal namespace %s: %w", namespace, err)
	}
	return nil
}

func ensureNamespace(ctx context.Context, c client.Client, namespace string) error {
	_, err := c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: namespace})
	if isAdminDenied(err) {
		return nil // a client that may not describe it can still use it, so it exists
	}
	if _, ok := errors.AsType[*serviceerror.NamespaceNotFound](err); !ok {
		return err
	}
	_, err = c.WorkflowService().RegisterNamespace(ctx, &workflowservice.RegisterNamespaceRequest{
		Namespace: namespace, Description: "fleetflow", WorkflowExecutionRetentionPeriod: durationpb.New(Retention),
	})
	if _, ok := errors.AsType[*serviceerror.NamespaceAlreadyExists](err); ok {
		return nil
	}
	return err
}

func ensureAttributes(ctx context.Context, c client.Client, namespace string) error {
	list, err := c.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: namespace})
	if isAdminDenied(err) {
		return nil // Temporal's administrator has to create them; starting a workflow fails without them
	}
	if err != nil {
		return err
	}
	missing := map[string]enums.IndexedValueType{}
	for _, name := range []string{wf.PlacementAttribute, wf.RunAttribute, wf.StageAttribute, wf.PhaseAttribute} {
		if _, exists := list.GetCustomAttributes()[name]; !exists {
			missing[name] = enums.INDEXED_VALUE_TYPE_KEYWORD
		}
	}
	if len(missing) == 0 {
		return nil
	}
	_, err = c.OperatorService().AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{Namespace: namespace,
		SearchAttributes: missing})
	if _, ok := errors.AsType[*serviceerror.AlreadyExists](err); ok {
		return nil
	}
	if err != nil {
		return fmt.Errorf("adding %s, of type Keyword: %w", strings.Join(slices.Sorted(maps.Keys(missing)), ", "), err)
	}
	return nil
}

// isAdminDenied reports whether Temporal denies its administration to this client, as it does to an
// API key of one namespace.
func isAdminDenied(err error) bool {
	if _, ok := errors.AsType[*serviceerror.PermissionDenied](err); ok {
		return true
	}
	_, ok := errors.AsType[*serviceerror.Unimplemented](err)
	return ok
}
