//! What a server must be told of our kinds: the schemas the types give, in the form the reference's have.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube::CustomResourceExt;

use crate::{
    CapacityBuffer, NodeClaim, NodeOverlay, NodePool, ProxmoxNodeClass, ProxmoxTemplate, ProxmoxUnmanagedTemplate,
};

/// Every definition a cluster needs before the first object.
pub fn definitions() -> Vec<CustomResourceDefinition> {
    let with_spec = [NodePool::crd(), NodeClaim::crd(), NodeOverlay::crd(), CapacityBuffer::crd()];
    let spec_optional = [ProxmoxNodeClass::crd(), ProxmoxTemplate::crd(), ProxmoxUnmanagedTemplate::crd()];
    let with_spec = with_spec.into_iter().map(|definition| finish(definition, &["spec"]));
    with_spec.chain(spec_optional.into_iter().map(|definition| finish(definition, &[]))).collect()
}

/// Under which file name the reference keeps a definition.
pub fn file_name(definition: &CustomResourceDefinition) -> String {
    format!("{}_{}.yaml", definition.spec.group, definition.spec.names.plural)
}

fn finish(mut definition: CustomResourceDefinition, required: &[&str]) -> CustomResourceDefinition {
    let names = &mut definition.spec.names;
    names.list_kind = Some(format!("{}List", names.kind));
    for version in &mut definition.spec.versions {
        if let Some(root) = version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut()) {
            tidy(root);
            root.title = None;
            root.required = (!required.is_empty()).then(|| required.iter().map(ToString::to_string).collect());
        }
    }
    definition
}

/// Takes out of a schema what changes how a server reads objects, and was not said by anybody.
fn tidy(schema: &mut JSONSchemaProps) {
    // A null that may be there is stored; one that may not is dropped and the default comes in its place.
    schema.nullable = None;
    // Doc comments are wrapped for people who read code; `kubectl explain` wraps for its own reader.
    schema.description = schema.description.take().map(|text| text.replace('\n', " "));
    if let Some(words) = &mut schema.enum_ {
        words.retain(|word| !word.0.is_null());
    }
    if schema.x_kubernetes_int_or_string == Some(true) {
        let of_type = |name: &str| JSONSchemaProps { type_: Some(name.to_owned()), ..JSONSchemaProps::default() };
        schema.type_ = None;
        schema.any_of = Some(vec![of_type("integer"), of_type("string")]);
    }
    schema.properties.iter_mut().flat_map(|fields| fields.values_mut()).for_each(tidy);
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
        tidy(items);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        tidy(values);
    }
}
