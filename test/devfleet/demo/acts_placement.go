package demo

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

var (
	placementKey = client.ObjectKey{Name: placementName}
	ofPlacement  = client.MatchingLabels{placementv1beta1.ParentPlacementLabel: placementName}

	scheduledType = placementv1beta1.Scope{}.PlacementConditionType(placementv1beta1.ConditionTypeScheduled)
	availableType = placementv1beta1.Scope{}.PlacementConditionType(placementv1beta1.ConditionTypeAvailable)
)

// place creates what is placed and the placement.
func (s *story) place(ctx context.Context) error {
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: named(namespaceName)}, configMap("value1"), deployment(s.hasRealNode()), placement(),
	} {
		if err := s.Hub.Create(ctx, object); err != nil {
			return fmt.Errorf("creating %T %s: %w", object, object.GetName(), err)
		}
	}
	s.screen.did("created Namespace %s, ConfigMap %s (%s=value1), Deployment %s (%d replicas)", namespaceName, configMapName, configKey,
		deploymentName, replicas)
	s.screen.did("created ClusterResourcePlacement %s: PickAll, strategy External", placementName)
	crp, err := becomes(ctx, s, s.Hub, placementKey, fmt.Sprintf("the placement is Scheduled on all %d clusters", s.Fleet.Members),
		s.notScheduled)
	if err != nil {
		return err
	}
	if err := s.latestIs(ctx, 0); err != nil {
		return err
	}
	if err := s.untouched(ctx, crp); err != nil {
		return err
	}
	return s.kubectl(ctx, "get", "crp", placementName)
}

// notScheduled returns what is missing until every member is picked.
func (s *story) notScheduled(crp *placementv1beta1.ClusterResourcePlacement) string {
	if finding := notTrue(crp, scheduledType); finding != "" {
		return finding
	}
	picked := 0
	for _, cluster := range crp.Status.PerClusterPlacementStatuses {
		if cluster.ClusterName != "" {
			picked++
		}
	}
	if picked != s.Fleet.Members {
		return fmt.Sprintf("the status lists %d clusters, want %d", picked, s.Fleet.Members)
	}
	return ""
}

// untouched checks that a placement which waits for its first run has reached no cluster.
func (s *story) untouched(ctx context.Context, crp *placementv1beta1.ClusterResourcePlacement) error {
	finding := ""
	if c := meta.FindStatusCondition(crp.Status.Conditions, availableType); c != nil {
		finding = fmt.Sprintf("%s is %s: %s", c.Type, c.Status, c.Reason)
	}
	const object = "ClusterResourcePlacement " + placementName
	if err := s.holds(ctx, object, "it is not AVAILABLE: no such condition before a run", finding); err != nil {
		return err
	}
	works := &placementv1beta1.WorkList{}
	if err := s.Hub.List(ctx, works, ofPlacement); err != nil {
		return fmt.Errorf("listing Works: %w", err)
	}
	if len(works.Items) > 0 {
		finding = fmt.Sprintf("Work %s/%s", works.Items[0].Namespace, works.Items[0].Name)
	}
	for _, member := range s.Fleet.MemberNames() {
		err := s.Members[member].Get(ctx, client.ObjectKey{Name: namespaceName}, &corev1.Namespace{})
		switch {
		case err == nil:
			finding = "the namespace is on " + member
		case !apierrors.IsNotFound(err):
			return fmt.Errorf("looking for the namespace on %s: %w", member, err)
		}
	}
	return s.holds(ctx, object, "nothing is on the members", finding)
}

// latestIs waits until the snapshot of an index is the latest and the ones before it are not.
func (s *story) latestIs(ctx context.Context, index int) error {
	name := placementv1beta1.ResourceSnapshotName(placementName, index, 0)
	statement := fmt.Sprintf("%s is the latest snapshot", name)
	if index > 0 {
		statement = fmt.Sprintf("%s is the latest of %d snapshots", name, index+1)
	}
	return allBecome(ctx, s, s.Hub, statement, func(snapshots []*placementv1beta1.ClusterResourceSnapshot) string {
		return notLatest(snapshots, index)
	}, ofPlacement)
}

// notLatest returns what is wrong with a placement's snapshots, of which there should be index+1, only the last of them
// the latest. It is pure.
func notLatest(snapshots []*placementv1beta1.ClusterResourceSnapshot, index int) string {
	if len(snapshots) != index+1 {
		return fmt.Sprintf("there are %d snapshots, want %d", len(snapshots), index+1)
	}
	for _, snapshot := range snapshots {
		is := snapshot.Labels[placementv1beta1.IsLatestSnapshotLabel]
		want := strconv.FormatBool(snapshot.Labels[placementv1beta1.ResourceIndexLabel] == strconv.Itoa(index))
		if is != want {
			return fmt.Sprintf("%s has label %s=%s, want %s", snapshot.Name, placementv1beta1.IsLatestSnapshotLabel, is, want)
		}
	}
	return ""
}

// change is the how-to's first edit; it too must reach no member.
func (s *story) change(ctx context.Context) error {
	if err := s.edit(ctx, "value2", 1); err != nil {
		return err
	}
	if err := s.snapshotHas(ctx, 1, "value2"); err != nil {
		return err
	}
	crp := &placementv1beta1.ClusterResourcePlacement{}
	if err := s.Hub.Get(ctx, placementKey, crp); err != nil {
		return fmt.Errorf("reading the placement: %w", err)
	}
	if err := s.untouched(ctx, crp); err != nil {
		return err
	}
	return s.kubectl(ctx, "get", "clusterresourcesnapshots", "--show-labels")
}

// edit gives the ConfigMap another value and waits for the snapshot of it.
func (s *story) edit(ctx context.Context, value string, index int) error {
	cm := configMap("")
	if err := s.Hub.Get(ctx, client.ObjectKeyFromObject(cm), cm); err != nil {
		return fmt.Errorf("reading the ConfigMap: %w", err)
	}
	was := cm.Data[configKey]
	cm.Data[configKey] = value
	if err := s.Hub.Update(ctx, cm); err != nil {
		return fmt.Errorf("changing the ConfigMap: %w", err)
	}
	s.screen.did("changed ConfigMap %s on the hub: %s=%s, was %s", configMapName, configKey, value, was)
	return s.latestIs(ctx, index)
}

// snapshotHas checks what a snapshot has kept.
func (s *story) snapshotHas(ctx context.Context, index int, value string) error {
	name := placementv1beta1.ResourceSnapshotName(placementName, index, 0)
	snapshot := &placementv1beta1.ClusterResourceSnapshot{}
	if err := s.Hub.Get(ctx, client.ObjectKey{Name: name}, snapshot); err != nil {
		return fmt.Errorf("reading snapshot %s: %w", name, err)
	}
	finding := "no such ConfigMap in it"
	for _, resource := range snapshot.Spec.SelectedResources {
		content := string(resource.Raw)
		if !strings.Contains(content, `"kind":"ConfigMap"`) || !strings.Contains(content, `"name":"`+configMapName+`"`) {
			continue
		}
		finding = ""
		if !strings.Contains(content, fmt.Sprintf(`"%s":"%s"`, configKey, value)) {
			finding = "the ConfigMap in it is " + content
		}
	}
	return s.holds(ctx, "ClusterResourceSnapshot "+name, fmt.Sprintf("it keeps %s=%s", configKey, value), finding)
}

// stages creates the strategy.
func (s *story) stages(ctx context.Context) error {
	wanted := strategy(s.soak, s.Fleet.Members)
	if err := s.Hub.Create(ctx, wanted); err != nil {
		return fmt.Errorf("creating the strategy: %w", err)
	}
	s.screen.did("created ClusterStagedUpdateStrategy %s", strategyName)
	for i, stage := range wanted.Spec.Stages {
		s.screen.output(describeStage(i, stage))
	}
	stored := &placementv1beta1.ClusterStagedUpdateStrategy{}
	if err := s.Hub.Get(ctx, client.ObjectKeyFromObject(wanted), stored); err != nil {
		return fmt.Errorf("reading the strategy: %w", err)
	}
	finding := ""
	for _, stage := range stored.Spec.Stages {
		if stage.MaxConcurrency == nil || stage.MaxConcurrency.IntValue() != 1 {
			finding = fmt.Sprintf("stage %s has maxConcurrency %v", stage.Name, stage.MaxConcurrency)
		}
	}
	return s.holds(ctx, "ClusterStagedUpdateStrategy "+strategyName, "accepted, with one cluster at a time by default", finding)
}

// describeStage returns a stage in one line. It is pure.
func describeStage(i int, stage placementv1beta1.StageConfig) string {
	text := fmt.Sprintf("%d %-10s %s=%s", i+1, stage.Name, environment, stage.LabelSelector.MatchLabels[environment])
	if stage.SortingLabelKey != nil {
		text += ", by label " + *stage.SortingLabelKey
	}
	for _, task := range stage.AfterStageTasks {
		text += ", then " + string(task.Type)
		if task.WaitTime != nil {
			text += " " + task.WaitTime.Duration.String()
		}
	}
	return text
}
