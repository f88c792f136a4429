package imagepull

import (
	"slices"
	"sync"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

// results are what is known of images on nodes. Several nodes pull at the same time.
type results struct {
	mu     sync.Mutex
	images map[string]*fleetflowv1alpha1.PulledImage
}

// newResults returns results of images of which nothing is known.
func newResults(asked []fleetflowv1alpha1.ImagesOfPods) *results {
	r := &results{images: map[string]*fleetflowv1alpha1.PulledImage{}}
	for i := range asked {
		for _, image := range asked[i].Images {
			r.images[image] = &fleetflowv1alpha1.PulledImage{Image: image, Outcome: fleetflowv1alpha1.RehearsalPulled}
		}
	}
	return r
}

// add takes up what is known of an image on a node. That it is refused matters more than that it is unknown, and that more than that it
// was pulled elsewhere. The words of the first count.
func (r *results) add(image string, of verdict) {
	r.mu.Lock()
	defer r.mu.Unlock()
	said := r.images[image]
	if said == nil {
		return
	}
	said.Nodes++
	if of.outcome == fleetflowv1alpha1.RehearsalPulled {
		said.Pulled++
		return
	}
	if said.Outcome == fleetflowv1alpha1.RehearsalPulled ||
		said.Outcome == fleetflowv1alpha1.RehearsalUnknown && of.outcome == fleetflowv1alpha1.RehearsalRefused {
		said.Outcome = of.outcome
		said.Message = of.message
	}
}

// tell returns what is known of all images, by name. An image that no node was asked for is unknown.
func (r *results) tell() []fleetflowv1alpha1.PulledImage {
	r.mu.Lock()
	defer r.mu.Unlock()
	told := make([]fleetflowv1alpha1.PulledImage, 0, len(r.images))
	for _, said := range r.images {
		one := *said
		if one.Nodes == 0 {
			one.Outcome = fleetflowv1alpha1.RehearsalUnknown
			one.Message = "no node was asked for it"
		}
		told = append(told, one)
	}
	slices.SortFunc(told, func(a, b fleetflowv1alpha1.PulledImage) int {
		if a.Image < b.Image {
			return -1
		}
		return 1
	})
	return told
}
