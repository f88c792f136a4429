package migration

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Annotations by which Helm knows the release of an object, and what it is to keep.
const (
	releaseNameAnnotation      = "meta.helm.sh/release-name"
	releaseNamespaceAnnotation = "meta.helm.sh/release-namespace"
	resourcePolicyAnnotation   = "helm.sh/resource-policy"
	keepPolicy                 = "keep"
)

// fleetKinds matches the names of definitions that KubeFleet's charts have.
var fleetKinds = regexp.MustCompile(`\.(kubernetes-fleet\.io|kubefleet\.dev)$|^clusterprofiles\.multicluster\.x-k8s\.io$`)

// Release is a release of Helm that has definitions of the fleet's kinds among its objects, which nothing keeps: they are deleted
// by an upgrade to a chart that has them not, and by the uninstallation of the release. Every object of these kinds goes with
// them, and everything that such an object owns.
type Release struct {
	Namespace, Name string
	// Definitions are the names of the definitions, in their order.
	Definitions []string
}

// ReadReleases returns the releases of a cluster that would delete definitions.
func ReadReleases(ctx context.Context, c client.Client) ([]Release, error) {
	definitions := &metav1.PartialObjectMetadataList{}
	definitions.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinitionList"})
	if err := (reader{c}).list(ctx, definitions); err != nil {
		return nil, err
	}
	return releasesOf(definitions.Items), nil
}

// releasesOf returns the releases that would delete some of these definitions.
func releasesOf(definitions []metav1.PartialObjectMetadata) (found []Release) {
	for i := range definitions {
		said := definitions[i].Annotations
		name := said[releaseNameAnnotation]
		if name == "" || said[resourcePolicyAnnotation] == keepPolicy || !fleetKinds.MatchString(definitions[i].Name) {
			continue
		}
		namespace := said[releaseNamespaceAnnotation]
		at := slices.IndexFunc(found, func(r Release) bool { return r.Namespace == namespace && r.Name == name })
		if at < 0 {
			at, found = len(found), append(found, Release{Namespace: namespace, Name: name})
		}
		found[at].Definitions = append(found[at].Definitions, definitions[i].Name)
	}
	for _, release := range found {
		slices.Sort(release.Definitions)
	}
	slices.SortFunc(found, func(a, b Release) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return found
}

// Describe says what a release would delete, and how that is kept. A cluster that is not the hub is named by its context.
func (r Release) Describe(kubeContext string) string {
	kubectl := "kubectl"
	if kubeContext != "" {
		kubectl += " --context " + kubeContext
	}
	return fmt.Sprintf("release %s of Helm in namespace %s has %d definition(s) of the fleet's kinds among its objects, as KubeFleet's charts have them: an upgrade of it to "+
		"fleetflow's chart would delete them, with every object of these kinds and everything that is placed. Keep them first: %s annotate crd --overwrite %s %s=%s; "+
		"and do not uninstall this release before fleetflow's chart has taken its place: Helm would delete them all the same",
		r.Name, r.Namespace, len(r.Definitions), kubectl, strings.Join(r.Definitions, " "), resourcePolicyAnnotation, keepPolicy)
}

// RefuseReleases returns an error if a release of a cluster would delete definitions.
func RefuseReleases(ctx context.Context, c client.Client, kubeContext string) error {
	releases, err := ReadReleases(ctx, c)
	if err != nil || len(releases) == 0 {
		return err
	}
	return fmt.Errorf("%s. kubectl fleet migrate check says more", releases[0].Describe(kubeContext))
}

// checkReleases says which releases of Helm would delete definitions, on the hub and on members that were named.
func (c *checker) checkReleases() {
	for _, cluster := range c.Releases {
		for _, release := range cluster.Releases {
			object := "release " + release.Namespace + "/" + release.Name
			if cluster.Context != "" {
				object += " on " + cluster.Context
			}
			c.report.find(InTheWay, "DefinitionsOfRelease", object, release.Describe(cluster.Context))
		}
	}
}
