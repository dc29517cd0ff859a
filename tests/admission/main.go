// Applies a MutatingAdmissionPolicy to pods by the API server's own evaluator: admission POLICY POD...
// Prints one line of JSON for each pod: as it is created, or null where the conditions leave it alone.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	v1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/client-go/openapi/openapitest"
	"sigs.k8s.io/yaml"
)

var (
	kind     = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	resource = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
)

func main() {
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(policyFile string, pods []string) error {
	var list struct{ Items []json.RawMessage }
	var policy v1.MutatingAdmissionPolicy
	var binding v1.MutatingAdmissionPolicyBinding
	text, err := os.ReadFile(policyFile)
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil {
		return err
	}
	// Fields that the published type does not have are errors.
	if err := errors.Join(yaml.UnmarshalStrict(list.Items[0], &policy), yaml.UnmarshalStrict(list.Items[1], &binding)); err != nil {
		return err
	}
	converters := patch.NewTypeConverterManager(nil, openapitest.NewEmbeddedFileClient())
	go converters.Run(context.Background())
	for converters.GetTypeConverter(kind) == nil {
		time.Sleep(10 * time.Millisecond)
	}
	for _, file := range pods {
		pod := &corev1.Pod{}
		text, err := os.ReadFile(file)
		if err == nil {
			err = yaml.UnmarshalStrict(text, pod)
		}
		if err != nil {
			return err
		}
		pod.SetGroupVersionKind(kind)
		created, err := create(&policy, pod, converters.GetTypeConverter(kind))
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		line, err := json.Marshal(created)
		if err != nil {
			return err
		}
		fmt.Println(string(line))
	}
	return nil
}

// As the API server does (k8s.io/apiserver/pkg/admission/plugin/policy/mutating, compilePolicy).
func create(policy *v1.MutatingAdmissionPolicy, pod runtime.Object, converter managedfields.TypeConverter) (runtime.Object, error) {
	compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		return nil, err
	}
	options := cel.OptionalVariableDeclarations{HasAuthorizer: true}
	conditions := make([]cel.ExpressionAccessor, len(policy.Spec.MatchConditions))
	for i := range policy.Spec.MatchConditions {
		conditions[i] = (*matchconditions.MatchCondition)(&policy.Spec.MatchConditions[i])
	}
	compiled := compiler.CompileCondition(conditions, options, environment.NewExpressions)
	fail := v1.Fail
	matcher := matchconditions.NewMatcher(compiled, &fail, "policy", "validate", policy.Name)
	ctx := compiler.CreateContext(context.Background())
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	attributes := func() *admission.VersionedAttributes {
		record := admission.NewAttributesRecord(pod, nil, kind, "default", "pod", resource, "", admission.Create, &metav1.CreateOptions{}, false, nil)
		return &admission.VersionedAttributes{Attributes: record, VersionedKind: kind, VersionedObject: pod}
	}
	result := matcher.Match(ctx, attributes(), nil, nil)
	if result.Error != nil {
		return nil, result.Error
	}
	if !result.Matches {
		return nil, nil
	}
	options.HasPatchTypes = true
	for _, mutation := range policy.Spec.Mutations {
		var patcher patch.Patcher
		switch mutation.PatchType {
		case v1.PatchTypeJSONPatch:
			condition := &patch.JSONPatchCondition{Expression: mutation.JSONPatch.Expression}
			patcher = patch.NewJSONPatcher(compiler.CompileMutatingEvaluator(condition, options, environment.NewExpressions))
		case v1.PatchTypeApplyConfiguration:
			condition := &patch.ApplyConfigurationCondition{Expression: mutation.ApplyConfiguration.Expression}
			patcher = patch.NewApplyConfigurationPatcher(compiler.CompileMutatingEvaluator(condition, options, environment.NewExpressions))
		default:
			return nil, fmt.Errorf("unknown patchType %q", mutation.PatchType)
		}
		pod, err = patcher.Patch(ctx, patch.Request{
			MatchedResource:     resource,
			VersionedAttributes: attributes(),
			ObjectInterfaces:    admission.NewObjectInterfacesFromScheme(scheme),
			TypeConverter:       converter,
		}, celconfig.RuntimeCELCostBudget)
		if err != nil {
			return nil, err
		}
	}
	return pod, nil
}
