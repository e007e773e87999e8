package wattwire;

import com.eclipsesource.json.JsonObject;

/**
 * The fields of READY (C-07) except startup_ns; unknown values are null. The kit adds the settings
 * that `effective` lacks, with their requested values.
 */
public record Ready(
        Long matched,
        Long discoveryNs,
        Library library,
        JsonObject effective,
        Guarantee guarantee) {

    public record Library(String name, String version, String build) {}

    public record Guarantee(String delivery, String ordering, String overload) {}

    JsonObject toJson(long startupNs, JsonObject effectiveValues) {
        return new JsonObject()
                .add("startup_ns", startupNs)
                .add("matched", Lines.nullable(matched))
                .add("discovery_ns", Lines.nullable(discoveryNs))
                .add(
                        "library",
                        new JsonObject()
                                .add("name", library.name)
                                .add("version", library.version)
                                .add("build", library.build))
                .add("effective", effectiveValues)
                .add(
                        "guarantee",
                        new JsonObject()
                                .add("delivery", guarantee.delivery)
                                .add("ordering", guarantee.ordering)
                                .add("overload", guarantee.overload));
    }
}
